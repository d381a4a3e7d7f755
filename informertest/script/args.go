package script

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"
)

// args are the words of a line behind its verb. Each is taken once; what is left in the end is an
// error, as is the first that could not be read.
type args struct {
	words []string
	named map[string]string
	err   error
}

func newArgs(words []string) *args {
	a := &args{named: map[string]string{}}
	for _, word := range words {
		if name, value, ok := strings.Cut(word, "="); ok {
			if _, twice := a.named[name]; twice {
				a.fail(fmt.Errorf("%s= is there twice", name))
			}
			a.named[name] = value
		} else {
			a.words = append(a.words, word)
		}
	}
	return a
}

func (a *args) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// end is the first error, or that of arguments that were not taken.
func (a *args) end() error {
	switch {
	case a.err != nil:
		return a.err
	case len(a.words) > 0:
		return fmt.Errorf("%q is not expected", a.words[0])
	case len(a.named) > 0:
		return fmt.Errorf("%s= is not expected", slices.Sorted(maps.Keys(a.named))[0])
	}
	return nil
}

// word takes the next word, or is otherwise.
func (a *args) word(otherwise string) string {
	if len(a.words) == 0 {
		return otherwise
	}
	word := a.words[0]
	a.words = a.words[1:]
	return word
}

// keys takes all words that are left, one at least.
func (a *args) keys() []string {
	keys := a.words
	a.words = nil
	if len(keys) == 0 {
		a.fail(errors.New("it needs keys"))
	}
	for _, key := range keys {
		if name, err := cache.ParseObjectName(key); err != nil || name.Namespace == "" || name.Name == "" {
			a.fail(fmt.Errorf("%q is not the key of an object, namespace/name", key))
		}
	}
	return keys
}

// count takes the next word, a number that is not negative.
func (a *args) count() int {
	word := a.word("")
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 {
		a.fail(fmt.Errorf("it needs a number, not %q", word))
	}
	return n
}

// duration takes the next word.
func (a *args) duration(otherwise time.Duration) time.Duration {
	word := a.word("")
	if word == "" && otherwise > 0 {
		return otherwise
	}
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		a.fail(fmt.Errorf("it needs a duration, not %q", word))
	}
	return d
}

// take takes what a name stands for.
func (a *args) take(name string) (value string, ok bool) {
	value, ok = a.named[name]
	delete(a.named, name)
	return value, ok
}

func (a *args) namedCount(name string, otherwise int) int {
	value, ok := a.take(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		a.fail(fmt.Errorf("%s=%s is not a number", name, value))
	}
	return n
}

func (a *args) namedDuration(name string, otherwise time.Duration) time.Duration {
	value, ok := a.take(name)
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		a.fail(fmt.Errorf("%s=%s is not a duration", name, value))
	}
	return d
}

// namedOne takes what a name stands for, which has to be one of those given; the first is the
// default.
func (a *args) namedOne(name string, of ...string) string {
	value, ok := a.take(name)
	if !ok {
		return of[0]
	}
	if !slices.Contains(of, value) {
		a.fail(fmt.Errorf("%s=%s is not one of %s", name, value, strings.Join(of, ", ")))
	}
	return value
}
