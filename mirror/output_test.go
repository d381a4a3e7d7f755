package main

import (
	"bytes"
	"strings"
	"sync"
)

// output is a screen that remembers what was written to it.
type output struct {
	screen *screen

	mu        sync.Mutex
	all, errs bytes.Buffer
	reached   func(all string) bool
	then      func()
}

func newOutput() *output {
	o := &output{}
	o.screen = newScreen(stream{o, &o.all}, stream{o, &o.errs})
	return o
}

// when calls then once what was written has reached something.
func (o *output) when(reached func(all string) bool, then func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reached, o.then = reached, then
}

// has matches a text.
func has(text string) func(all string) bool {
	return func(all string) bool { return strings.Contains(all, text) }
}

// String is everything, in order.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// messages is what went to the standard error output.
func (o *output) messages() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errs.String()
}

type stream struct {
	of *output
	to *bytes.Buffer
}

func (s stream) Write(text []byte) (int, error) {
	o := s.of
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.to != &o.all {
		s.to.Write(text)
	}
	o.all.Write(text)
	if o.then != nil && o.reached(o.all.String()) {
		o.then()
		o.then = nil
	}
	return len(text), nil
}
