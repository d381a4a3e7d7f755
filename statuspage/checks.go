package statuspage

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer"
)

// check is one line of a health check.
type check struct {
	// fixed is its name, empty for that of an informer.
	fixed    string
	informer name
	// why is what has failed, empty if all is well, and behind is the condition that says more, if
	// there is one. It is redacted for what is shown of it only.
	why    string
	behind *informer.Condition
	// excused tells that the process is ready although the check has failed.
	excused bool
	// unreached tells that the server of its cluster cannot be reached, which the others do not wait for.
	unreached bool
}

var ping = check{fixed: "ping"}

func (c *check) name() string {
	if c.fixed != "" {
		return c.fixed
	}
	return "informer/" + c.informer.String()
}

// failure says why the check has failed.
func (c *check) failure() string {
	if c.behind == nil {
		return c.why
	}
	return c.why + ": " + described(*c.behind)
}

// readyChecks are those of /readyz.
//
// An informer that has synced once stays ready, whatever becomes of its server: what it has is what
// there is to serve, and a server that is down would else take all replicas out at once. A quiet
// cluster changes nothing either. For the same reason, a process that has been ready for a while
// stays so when informers are added. Nor is a process waited for whose other clusters have synced,
// while one cannot be reached from the start.
func (p *Page) readyChecks() []check {
	shutdown := check{fixed: "shutdown"}
	if p.draining.Load() {
		shutdown.why = "the process is draining"
	}
	targets := p.targets()
	checks := append(make([]check, 0, 2+len(targets)), ping, shutdown)
	some := false
	for i := range targets {
		c := check{informer: targets[i].name}
		if s := targets[i].Status(); !s.Synced {
			c.why, c.behind = "not synced", &s.Condition
		} else {
			some = true
		}
		checks = append(checks, c)
	}
	now, synced := time.Now(), true
	reached := reachedClusters(checks, now)
	for i := range checks {
		c := &checks[i]
		if c.behind == nil {
			continue
		}
		c.unreached = some && !reached[c.informer.labels.Cluster]
		c.excused, synced = c.unreached, synced && c.unreached
	}
	if p.ready.note(len(targets), synced, now) {
		for i := range checks {
			checks[i].excused = checks[i].fixed == ""
		}
	}
	return checks
}

// reachedClusters are those that an informer has synced of, or that wait for something else than their
// server, or not for readyFor yet.
func reachedClusters(checks []check, now time.Time) map[string]bool {
	reached := map[string]bool{}
	for i := range checks {
		c := &checks[i]
		if c.fixed != "" {
			continue
		}
		away := c.behind != nil && (c.behind.Reason == informer.ReasonServerUnreachable || c.behind.Reason == informer.ReasonStalled)
		if !away || c.behind.Since.IsZero() || now.Sub(c.behind.Since) < readyFor {
			reached[c.informer.labels.Cluster] = true
		}
	}
	return reached
}

// liveChecks are those of /livez.
//
// They fail for what a new process may do better: the reading of this one stands still, although
// the server could be asked. A restart does not help where a server is down or refuses, where a
// list waits for its turn, or where a handler does not return: it would only lose what is known,
// and add a list to the load of the server. So an informer is live
//   - while its last contact with the server, or its last failure, is younger than Grace: bookmarks
//     are contacts, so that a quiet cluster is live;
//   - while it waits for anything else than the next event of a watch: for a pause between two
//     attempts, for a list, or for its handler.
func (p *Page) liveChecks() []check {
	targets := p.targets()
	checks := append(make([]check, 0, 1+len(targets)), ping)
	now, grace := time.Now(), p.grace()
	for i := range targets {
		c := check{informer: targets[i].name}
		if s := targets[i].Status(); !targets[i].Foreign && standsStill(&s, now, grace) {
			c.why, c.behind = "the watch has made no progress for "+span(now.Sub(s.LastContact)), &s.Condition
		}
		checks = append(checks, c)
	}
	return checks
}

func standsStill(s *informer.Status, now time.Time, grace time.Duration) bool {
	progress := s.LastContact
	if s.LastErrorTime.After(progress) {
		progress = s.LastErrorTime
	}
	return s.Phase == informer.PhaseWatching && s.Queued == 0 && !s.LastContact.IsZero() && now.Sub(progress) > grace
}

func described(c informer.Condition) string {
	shown := conditionOf(c)
	text := string(shown.Reason)
	if shown.Message != "" {
		text += ": " + shown.Message
	}
	return visible(strings.Join(strings.Fields(text), " ")) // a check is one line
}

// Ready returns an error if the process is not ready, as /readyz does. It is a healthz.Checker of
// controller-runtime.
func (p *Page) Ready(*http.Request) error { return failureOf(p.readyChecks()) }

// Live returns an error if a watch makes no progress that should, as /livez does. It is a
// healthz.Checker of controller-runtime.
func (p *Page) Live(*http.Request) error { return failureOf(p.liveChecks()) }

const (
	// maxDescribed is how many failures are described.
	maxDescribed = 20
	// maxNamed is how many more are named by ?verbose, and how many checks that are well.
	maxNamed = 1000
)

// failureOf names the checks that have failed.
func failureOf(checks []check) error {
	var errs []error
	failed := 0
	for i := range checks {
		c := &checks[i]
		if c.why == "" || c.excused {
			continue
		}
		if failed++; failed <= maxDescribed {
			errs = append(errs, fmt.Errorf("%s: %s", c.name(), c.failure()))
		}
	}
	if failed > maxDescribed {
		errs = append(errs, fmt.Errorf("and %d more", failed-maxDescribed))
	}
	return errors.Join(errs...)
}

// serveChecks answers a health check as Kubernetes does. Below is the rest of the path: the name of
// a check, or of informers that have the beginning of their names in common.
func (p *Page) serveChecks(w http.ResponseWriter, r *http.Request, kind, below string, of func() []check) {
	checks := of()
	below = strings.Trim(below, "/")
	whole := below == "" // what is asked for by name has no excuse
	if !whole {
		checks = slices.DeleteFunc(checks, func(c check) bool { return !c.within(below) })
		if len(checks) == 0 {
			http.NotFound(w, r)
			return
		}
	}
	v := r.URL.Query()
	verbose := v.Has("verbose")
	var out strings.Builder
	failed, passed, named, matched := 0, 0, 0, map[string]bool{}
	if verbose {
		named = maxNamed
	}
	for i := range checks {
		c := &checks[i]
		excluded := slices.IndexFunc(v["exclude"], c.within)
		if excluded >= 0 {
			matched[v["exclude"][excluded]] = true
		}
		switch {
		case c.why != "" && excluded < 0 && !(c.excused && whole):
			switch failed++; {
			case failed <= maxDescribed:
				fmt.Fprintf(&out, "[-]%s failed: %s\n", c.name(), c.failure())
			case failed <= maxDescribed+named:
				fmt.Fprintf(&out, "[-]%s failed\n", c.name())
			}
		default:
			if passed++; passed > named {
				break
			}
			of := ""
			switch {
			case excluded >= 0:
				of = " excluded:"
			case c.unreached:
				of = " not reached:"
			case c.why != "":
				of = " added later:"
			}
			fmt.Fprintf(&out, "[+]%s%s ok\n", c.name(), of)
		}
	}
	if verbose && passed > named {
		fmt.Fprintf(&out, "and %d more ok\n", passed-named)
	}
	if more := failed - maxDescribed - named; more > 0 {
		fmt.Fprintf(&out, "and %d more\n", more)
	}
	for _, name := range v["exclude"] {
		if name != "" && !matched[name] {
			fmt.Fprintf(&out, "warn: some health checks cannot be excluded: no matches for %q\n", name)
		}
	}
	switch {
	case failed > 0:
		http.Error(w, out.String()+kind+" check failed", http.StatusInternalServerError)
	case verbose:
		answerText(w, out.String()+kind+" check passed\n")
	default:
		answerText(w, "ok")
	}
}

// within reports whether the check has a name, or a name below it.
func (c *check) within(name string) bool {
	rest, ok := strings.CutPrefix(c.name(), strings.Trim(name, "/"))
	return ok && name != "" && (rest == "" || rest[0] == '/')
}

func answerText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text)) // the other side may be gone
}
