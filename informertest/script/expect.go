package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/leaf/backoff"
)

// patience is how long an expectation may take to come true.
const patience = 10 * time.Second

// counts are what was counted since the mark.
type counts struct {
	mu    sync.Mutex
	since map[string]int // "added ns/name", and calls and failures
	total int            // calls since the beginning
}

// The names of two counters, beside those of the events that the handler is told.
const (
	calls    = "calls"
	failures = "errors"
)

func (c *counts) tell(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since[what]++
	c.since[calls]++
	c.total++
}

func (c *counts) failed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since[failures]++
}

func (c *counts) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.since)
}

func (c *counts) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since[what]
}

func (c *counts) sum() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// mark makes expectations count from here.
func (p *player) mark() {
	p.counts.reset()
	p.server.ResetRequests()
}

// measures are what "expect" can compare with a number.
var measures = map[string]func(p *player) int{
	"lists": func(p *player) int { return p.requests(asksForAll) },
	"watches": func(p *player) int {
		return p.requests(func(r informertest.Request) bool { return r.Verb == "watch" && !asksForAll(r) })
	},
	"unlimited": func(p *player) int {
		return p.requests(func(r informertest.Request) bool { return r.Verb == "list" && r.Options.Limit == 0 })
	},
	failures: func(p *player) int { return p.counts.of(failures) },
	calls:    func(p *player) int { return p.counts.of(calls) },
}

// asksForAll reports whether a request is a list or a watch-list, and not the question whether the
// server has a version.
func asksForAll(r informertest.Request) bool {
	if r.Verb == "list" {
		return r.Options.Limit != 1 || r.Options.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan
	}
	return ptr.Deref(r.Options.SendInitialEvents, false)
}

// requests counts those lists and watches of the resource since the mark.
func (p *player) requests(those func(informertest.Request) bool) int {
	n := 0
	for _, r := range p.server.Requests() {
		if r.GroupVersionResource == pods && (r.Verb == "list" || r.Verb == "watch") && those(r) {
			n++
		}
	}
	return n
}

func parseExpect(a *args) action {
	if word := a.word(""); word != "" {
		return parseExpectWord(a, word)
	}
	var name, value string
	for name, value = range a.named {
		delete(a.named, name)
		break
	}
	op := "="
	if name != "" && (strings.HasSuffix(name, "<") || strings.HasSuffix(name, ">")) {
		op = name[len(name)-1:] + op
		name = name[:len(name)-1]
	}
	measure := measures[name]
	want, err := strconv.Atoi(value)
	if measure == nil || err != nil {
		a.fail(errors.New("expect needs synced, not synced, told, or something that can be counted with =N, <=N or >=N"))
	}
	return expectation(func(p *player) error {
		got := measure(p)
		if op == "=" && got == want || op == "<=" && got <= want || op == ">=" && got >= want {
			return nil
		}
		return fmt.Errorf("there are %d", got)
	})
}

func parseExpectWord(a *args, word string) action {
	switch word {
	case "synced":
		return expectSynced(true)
	case "not":
		if next := a.word(""); next != "synced" {
			a.fail(fmt.Errorf("%q is not expected", next))
		}
		return expectSynced(false)
	case "told":
		change, key, times := a.word(""), a.keys(), a.namedCount("times", -1)
		if !slices.Contains([]string{"added", "updated", "deleted", "synced"}, change) {
			a.fail(fmt.Errorf("%q is neither added, updated, deleted nor synced", change))
		}
		return expectation(func(p *player) error {
			for _, key := range key {
				got := p.counts.of(change + " " + key)
				if times < 0 && got == 0 || times >= 0 && got != times {
					return fmt.Errorf("%s was told %d times", key, got)
				}
			}
			return nil
		})
	}
	a.fail(fmt.Errorf("%q is not expected", word))
	return nil
}

func expectSynced(want bool) action {
	return expectation(func(p *player) error {
		if p.subject == nil {
			return errors.New("there is no informer")
		}
		if got := p.subject.HasSynced(); got != want {
			return fmt.Errorf("HasSynced is %v", got)
		}
		return nil
	})
}

// expectation waits a little for what is to be. That it is not does not end the script.
func expectation(check func(p *player) error) action {
	return func(ctx context.Context, p *player) error {
		for begin := time.Now(); ; {
			err := check(p)
			if err == nil {
				return nil
			}
			if time.Since(begin) >= patience {
				p.miss(err)
				return nil
			}
			if err := backoff.Sleep(ctx, patience/20); err != nil {
				return err
			}
		}
	}
}

// Missed is a line of a script that expected something else than what came.
type Missed struct {
	Script string
	Line   int
	Text   string
	Err    error
}

func (m *Missed) Error() string { return fmt.Sprintf("%s:%d: %q: %v", m.Script, m.Line, m.Text, m.Err) }

// Unwrap returns what came.
func (m *Missed) Unwrap() error { return m.Err }

// miss notes that the line under way was not met.
func (p *player) miss(err error) {
	p.result.Missed = append(p.result.Missed, &Missed{Script: p.script.Name, Line: p.at.line, Text: p.at.text, Err: err})
}
