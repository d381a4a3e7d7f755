package redelivery

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// maxText is how many bytes the options of a job may have as a text: a checkpoint has room for not
// much more.
const maxText = 32 << 10

// Job is one redelivery. It is safe for concurrent use.
type Job struct {
	options api.RedeliverOptions
	started time.Time

	mu sync.Mutex
	// total is about how many objects there are, 0 if that is not known.
	total int64
	// after and done are the position, but while position is set, which returns it.
	after    string
	done     int64
	position func() (key string, done int64)
	// unsorted tells that the server does not list objects in the order of their keys.
	unsorted bool
	err      error
}

// text is a Job in a checkpoint.
type text struct {
	Selector  string    `json:"selector,omitempty"`
	Keys      []string  `json:"keys,omitempty"`
	PerSecond int       `json:"perSecond,omitempty"`
	Started   time.Time `json:"started"`
	After     string    `json:"after,omitempty"`
	Done      int64     `json:"done,omitempty"`
}

// New returns a job at its beginning. Namespace has all keys of the informer, if it is not empty. The
// error says what is wrong with the options.
func New(o api.RedeliverOptions, namespace string) (*Job, error) {
	o.Keys = slices.Clone(o.Keys)
	slices.Sort(o.Keys)
	o.Keys = slices.Compact(o.Keys)
	for _, key := range o.Keys {
		if namespace, name, found := strings.Cut(key, "/"); !utf8.ValidString(key) || namespace == "" || found && (name == "" || strings.Contains(name, "/")) {
			return nil, fmt.Errorf("key %q is neither a namespace/name nor a name", key)
		}
		if namespace != "" && !strings.HasPrefix(key, namespace+"/") {
			return nil, fmt.Errorf("key %q is not of namespace %q, which the informer follows", key, namespace)
		}
	}
	size := len((&Job{options: o}).Text())
	switch {
	case o.PerSecond < 0:
		return nil, fmt.Errorf("PerSecond is %d, and must not be negative", o.PerSecond)
	case len(o.Keys) > 0 && o.Selector != "":
		return nil, fmt.Errorf("there are Keys and a Selector: only one can be given")
	case size > maxText:
		return nil, fmt.Errorf("the options have %d bytes, %d is the most: use a shorter Selector, or fewer Keys in several calls", size, maxText)
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		return nil, fmt.Errorf("selector: %w", err)
	}
	return &Job{options: o, started: time.Now(), total: int64(len(o.Keys))}, nil
}

// Parse returns the job of a text. Here tells that the text is of the same set of objects: else the
// job is at its beginning.
func Parse(saved string, here bool) (*Job, error) {
	var t text
	if err := json.Unmarshal([]byte(saved), &t); err != nil {
		return nil, fmt.Errorf("redelivery in the checkpoint: %w", err)
	}
	j, err := New(api.RedeliverOptions{Selector: t.Selector, Keys: t.Keys, PerSecond: t.PerSecond}, "")
	if err != nil {
		return nil, fmt.Errorf("redelivery in the checkpoint: %w", err)
	}
	j.started = t.Started
	if here {
		j.after, j.done = t.After, t.Done
	}
	return j, nil
}

// Text returns what a later process needs to go on.
func (j *Job) Text() string {
	s := j.Status()
	b, _ := json.Marshal(text{s.Selector, s.Keys, s.PerSecond, s.Started, s.Position, s.Done}) // numbers, strings and a time that time.Now has made
	return string(b)
}

// Status returns how far the job has come.
func (j *Job) Status() *api.RedeliveryStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	after, done := j.positionLocked()
	return &api.RedeliveryStatus{RedeliverOptions: j.options, Started: j.started, Done: done, Total: j.total, Position: after, Err: j.err}
}

// Expect notes how many objects the informer has.
func (j *Job) Expect(objects int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.options.Selector == "" && len(j.options.Keys) == 0 {
		j.total = objects
	}
}

func (j *Job) positionLocked() (after string, done int64) {
	after, done = j.after, j.done
	if j.position != nil {
		after, done = j.position()
	}
	if j.unsorted {
		after = ""
	}
	return after, done
}

// follow has the position be what another one returns, until it is called with nil.
func (j *Job) follow(position func() (key string, done int64)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.after, j.done = j.positionLocked()
	j.position = position
}

// stay has the position stay where it is, while keys in another order are done.
func (j *Job) stay() {
	j.mu.Lock()
	defer j.mu.Unlock()
	after, _ := j.positionLocked()
	if position := j.position; position != nil {
		j.position = func() (string, int64) {
			_, done := position()
			return after, done
		}
	}
}

// disorder notes that the server does not list objects in the order of their keys.
func (j *Job) disorder() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unsorted = true
}

// note notes how the newest request went, unless ctx has ended.
func (j *Job) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = redact.Error(err)
}
