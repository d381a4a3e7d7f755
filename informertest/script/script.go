package script

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
)

// Script is a sequence of actions.
type Script struct {
	// Name is what errors call it: a file, or a seed.
	Name string
	// Title is its first comment, empty without one.
	Title string
	// server is what a line "server" says.
	server informertest.Options
	// judging is what its faults leave an informer no way to know.
	judging oracle.Options
	// typed: objects are decoded to their Go type, and mistyped: some do not fit it.
	typed, mistyped bool
	// shards: its informers follow parts of the set.
	shards bool
	steps  []step
}

// step is one action.
type step struct {
	line int
	text string
	play action
}

// Parse reads a script. Errors name the line.
func Parse(name string, text []byte) (*Script, error) {
	s := &Script{Name: name}
	lines := bufio.NewScanner(bytes.NewReader(text))
	n := 1
	for ; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if comment, ok := strings.CutPrefix(line, "#"); ok && s.Title == "" {
			s.Title = strings.TrimSpace(comment)
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		play, err := s.parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %q: %w", name, n, line, err)
		}
		s.steps = append(s.steps, step{line: n, text: line, play: play})
	}
	if err := lines.Err(); err != nil { // the line has no end that is near enough
		return nil, fmt.Errorf("%s:%d: a line has fewer than %d bytes: %w", name, n, bufio.MaxScanTokenSize, err)
	}
	return s, nil
}

func (s *Script) parseLine(line string) (action, error) {
	verb, rest := line, ""
	if end := strings.IndexFunc(line, unicode.IsSpace); end >= 0 {
		verb, rest = line[:end], strings.TrimSpace(line[end:])
	}
	switch verb {
	case "fault": // which has a language of its own
		return s.parseFault(rest)
	case "informer":
		return s.parseInformer(newArgs(strings.Fields(rest)))
	case "server":
		return nothing, s.parseServer(newArgs(strings.Fields(rest)))
	}
	s.shards = s.shards || verb == "shard"
	parse, ok := verbs[verb]
	if !ok {
		return nil, fmt.Errorf("%q is no action", verb)
	}
	a := newArgs(strings.Fields(rest))
	play := parse(a)
	return play, a.end()
}

func (s *Script) parseFault(text string) (action, error) {
	fault, err := informertest.ParseFault(text)
	if err != nil {
		return nil, err
	}
	effect, _, _ := strings.Cut(fault.Effect.String(), "=")
	lags := effect == "lag"
	switch effect {
	case "lag":
		s.judging.StaleLists = true
	case "repeat":
		s.judging.Disorder = true
	case "swap":
		s.judging.Disorder, s.judging.Overtaken = true, true
	case "garbage", "oversize", "unversioned":
		s.judging.Unreadable = true
	case "mistyped":
		s.mistyped = true
	}
	return func(_ context.Context, p *player) error {
		p.server.Inject(fault)
		if lags {
			p.lags.Add(1)
			p.behind.Store(true)
		}
		return nil
	}, nil
}

func (s *Script) parseInformer(a *args) (action, error) {
	config := parseConfig(a)
	switch n := config.Attempts; {
	case n == 0:
		s.judging.Panics = mostPanics
	case s.judging.Refusals == 0 || n < s.judging.Refusals:
		s.judging.Refusals = n
	}
	s.typed = s.typed || config.Decode == "typed"
	return func(_ context.Context, p *player) error {
		p.config = config
		return nil
	}, a.end()
}

// mostPanics is how often a handler panics without Attempts before it is given up, as BatchHandler and
// ResourceEventHandler of this module say.
const mostPanics = 6

// HasShards reports whether the informers of the script follow parts of the set. An informer that
// follows the whole set cannot be put to it.
func (s *Script) HasShards() bool { return s.shards }

// judgement is how the oracle is to judge an informer that plays the script.
func (s *Script) judgement() oracle.Options {
	o := s.judging
	o.SeesLists = true
	// A replay shows its objects in an order of its own, and the newest one may be the first.
	o.Overtaken = o.Overtaken || s.server.Dialect.Resume == informertest.ResumeReplays
	if o.Refusals == 0 {
		o.Panics = mostPanics
	}
	o.Unreadable = o.Unreadable || s.typed && s.mistyped
	return o
}

// nothing is an action that is done when the script begins.
func nothing(context.Context, *player) error { return nil }

func (s *Script) parseServer(a *args) error {
	if len(s.steps) > 0 {
		return errors.New("it has to be the first line")
	}
	s.server.OpaqueVersions = a.namedOne("versions", "numbers", "opaque") == "opaque"
	s.server.BookmarkInterval = a.namedDuration("bookmarks", 0)
	s.server.ShardedListAndWatch = a.namedOne("shards", "off", "on") == "on"
	s.server.GzipAbove = a.namedCount("gzip", 0)
	s.server.TLS = a.namedOne("tls", "off", "on") == "on"
	s.server.Dialect = dialects[a.namedOne("dialect", dialectNames...)]
	s.server.GzipWatches = a.namedOne("gzip-watches", "off", "on") == "on"
	return a.end()
}

// usualDialect is the name of that of a kube-apiserver.
const usualDialect = "none"

// dialects are those of informertest by name, and dialectNames the names, the default first.
var dialects, dialectNames = func() (map[string]informertest.Dialect, []string) {
	all, names := maps.Collect(informertest.Dialects()), []string{usualDialect}
	for name := range informertest.Dialects() {
		names = append(names, name)
	}
	return all, names
}()

// tellsAll reports whether watches of a server tell of all writes since its lists. Else an informer has
// to list, and is behind until then.
func tellsAll(d informertest.Dialect) bool {
	return d.RefuseWatches == 0 && d.Lists == informertest.VersionOfStore && d.Resume == informertest.ResumeFromHistory
}

// GoString is the text too, for printed values.
func (s *Script) GoString() string { return "\n\n" + s.String() }

// String is the text of the script, without its comments.
func (s *Script) String() string {
	var b strings.Builder
	for _, step := range s.steps {
		b.WriteString(step.text)
		b.WriteByte('\n')
	}
	return b.String()
}
