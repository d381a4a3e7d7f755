package mirrortest

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/rvinformer/informer/mirror/internal/display"
)

// Output is a screen that remembers what was written to it.
type Output struct {
	Screen *display.Screen

	mu        sync.Mutex
	all, errs bytes.Buffer
	reached   func(all string) bool
	then      func()
}

func NewOutput() *Output {
	o := &Output{}
	o.Screen = display.NewScreen(stream{o, &o.all}, stream{o, &o.errs})
	return o
}

// When calls then once what was written has reached something.
func (o *Output) When(reached func(all string) bool, then func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reached, o.then = reached, then
}

// Has matches a text.
func Has(text string) func(all string) bool {
	return func(all string) bool { return strings.Contains(all, text) }
}

// String is everything, in order.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// Messages is what went to the standard error output.
func (o *Output) Messages() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errs.String()
}

type stream struct {
	of *Output
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

// Streams are the standard output and the standard error output of a process.
func (o *Output) Streams() (out, errs io.Writer) { return stream{o, &o.all}, stream{o, &o.errs} }
