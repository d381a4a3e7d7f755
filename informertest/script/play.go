package script

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
)

// largest is the most bytes that one object of a script takes while it waits.
const largest = 4 << 10

var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// Options are how a script is played.
type Options struct {
	// Seed is that of the random decisions which the script leaves open: which handler calls fail,
	// which requests a fault meets, and, unless it is 0, the UIDs of objects. It does not decide
	// what the Go runtime does: the order of the goroutines' turns, and what the informer itself
	// takes from math/rand.
	Seed uint64
	// Loopback uses real connections, outside of a testing/synctest bubble.
	Loopback bool
}

// Result is what a script came to.
type Result struct {
	// Writes is the number of changes that the server made, Calls that of events that handlers were
	// told of.
	Writes, Calls int
	// Missed are the lines of the script that expected something else than what came.
	Missed []*Missed
	// Violations are what the oracle found.
	Violations []*oracle.Violation
	// History is what the oracle judged.
	History *oracle.History
}

// mostShown is how many violations an error has room for.
const mostShown = 5

// Err is what went wrong, of many violations the first; nil for nothing.
func (r *Result) Err() error {
	var errs []error
	for _, m := range r.Missed {
		errs = append(errs, m)
	}
	for i, v := range r.Violations {
		if i == mostShown {
			errs = append(errs, fmt.Errorf("and %d more", len(r.Violations)-i))
			break
		}
		errs = append(errs, v)
	}
	return errors.Join(errs...)
}

// Play plays a script against a server of its own. The error is that of a script that cannot be
// played; what the informer did wrong is in the result. It waits for all that it started. Ctx ends
// it early, with its error.
func Play(ctx context.Context, s *Script, maker Maker, opts Options) (*Result, error) {
	if maker == nil {
		return nil, fmt.Errorf("%s: there is no Maker", s.Name)
	}
	about := s.server
	about.Seed, about.InMemory = opts.Seed, !opts.Loopback
	p := &player{
		script: s, maker: maker, dice: newDice(opts.Seed), stableStore: &stableStore{}, config: defaultConfig(),
		result: &Result{}, counts: counts{since: map[string]int{}},
	}
	p.behaviour = &behaviour{dice: p.dice, lose: p.lose, over: make(chan struct{})}
	about.Wrap = p.inspect
	p.oracle = oracle.New(s.judgement())
	p.server = informertest.NewServer(about)
	defer p.server.Close()
	if err := p.addKubeSystem(); err != nil {
		return nil, err
	}
	defer p.server.Observe(p.observe)()
	defer func() { // what is left where the script ends early
		p.behaviour.end()
		p.quit()
		p.endAudits()
	}()
	for _, step := range s.steps {
		p.at = step
		if err := step.play(ctx, p); err != nil {
			return nil, fmt.Errorf("%s:%d: %q: %w", s.Name, step.line, step.text, err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if p.run != nil {
			p.run.sample()
		}
	}
	p.quit()
	p.endAudits()
	p.judge()
	p.result.Calls = p.counts.sum()
	return p.result, nil
}

// player plays one script.
type player struct {
	script      *Script
	maker       Maker
	server      *informertest.Server
	oracle      *oracle.Oracle
	behaviour   *behaviour
	dice        *dice
	stableStore *stableStore
	result      *Result
	counts      counts
	kept        kept
	asked       asked
	audits      audits
	metadata    atomic.Bool // an informer has asked for no more than that
	// losses counts how often something was lost, travels how often the server was restored, and lags
	// how often replicas have begun to stand still.
	losses, travels, lags atomic.Int64
	// behind: replicas stand still.
	behind atomic.Bool
	// lost: something was passed over, or could not be read, since a list was asked for.
	lost atomic.Bool
	// unread: something could not be read since.
	unread atomic.Bool

	config     Config
	process    *process // nil before the first start
	subject    *Subject // what has run last, and whether it has
	subjectRan bool
	run        *run // nil: none runs
	backup     *informertest.Backup
	vanished   bool
	states     atomic.Int64 // of objects, so far
	oblivion   atomic.Int64 // before one in how many requests the history is forgotten; 0: none
	travelled  atomic.Bool  // the server was restored, and the informer has not settled since
	at         step         // the line under way

	shard     informer.Shard                 // of the next informer
	following atomic.Pointer[informer.Shard] // that of the newest informer

	restoredMu sync.Mutex
	restored   restoring
}

// addKubeSystem creates the namespace that says which cluster this is.
func (p *player) addKubeSystem() error {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	obj := &unstructured.Unstructured{}
	obj.SetName(metav1.NamespaceSystem)
	_, err := p.server.Create(namespaces, obj)
	return err
}

// inspect sees each request before the server does.
func (p *player) inspect(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.isAudit(r) {
			server.ServeHTTP(w, r)
			return
		}
		redelivery := isRedelivery(r)
		if !redelivery {
			p.asked.note(p.oracle, r)
		}
		if strings.HasSuffix(r.URL.Path, "/"+pods.Resource) {
			if !redelivery {
				p.noteList(r.URL.Query())
			}
			if p.dice.one(int(p.oblivion.Load())) {
				p.forget()
			}
		}
		server.ServeHTTP(w, r)
	})
}

// isAudit reports whether a request is of an audit, as far as that can be told: it asks for
// metadata, and the informer does not.
func (p *player) isAudit(r *http.Request) bool {
	return !p.metadata.Load() && strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList")
}

// noteList tells the oracle of a list, or of a watch that begins with one. A list of one object,
// not older than a version, is only the question whether the server has that.
func (p *player) noteList(query url.Values) {
	question := query.Get("limit") == "1" && query.Has("resourceVersionMatch")
	begins := !query.Has("watch") && !query.Has("continue") && !question || query.Has("sendInitialEvents")
	if begins {
		p.oracle.Listed()
	}
}

// restoring collects the writes that describe a restored state.
type restoring struct {
	rv    string // empty: none is under way
	state []oracle.Write
}

// observe tells the oracle what the server did. It is called under the server's lock.
func (p *player) observe(w informertest.Write) {
	p.restoredMu.Lock()
	defer p.restoredMu.Unlock()
	write := oracle.Write{Key: w.Key, UID: w.UID, ResourceVersion: w.ResourceVersion}
	switch {
	case w.Type == informertest.Restored:
		p.restored = restoring{rv: w.ResourceVersion}
		return
	case w.Type == informertest.Kept:
		if w.Resource == pods {
			p.restored.state = append(p.restored.state, write)
		}
		return
	}
	p.endRestoringLocked()
	switch {
	case w.Resource != pods:
		write.Type = oracle.Other
	case w.Type == informertest.Created:
		write.Type = oracle.Created
	case w.Type == informertest.Updated:
		write.Type = oracle.Updated
	case w.Type == informertest.Deleted:
		write.Type = oracle.Deleted
	}
	p.oracle.Wrote(write)
	p.result.Writes++
}

func (p *player) endRestoring() {
	p.restoredMu.Lock()
	defer p.restoredMu.Unlock()
	p.endRestoringLocked()
}

func (p *player) endRestoringLocked() {
	if p.restored.rv != "" {
		p.oracle.Restored(p.restored.rv, p.restored.state)
		p.restored = restoring{}
	}
}

// quit ends what still runs.
func (p *player) quit() {
	p.heal()
	p.behaviour.set(manners{})
	p.behaviour.release()
	_ = p.stop(context.Background()) // which does not end
	p.kept.show(p.oracle)
}

// stop ends the run, if there is one, and waits for it, or until ctx ends.
func (p *player) stop(ctx context.Context) error {
	if p.run == nil {
		return nil
	}
	if err := p.run.stop(ctx); err != nil {
		return err
	}
	p.run = nil
	p.endAudits()
	return nil
}

// endAudits ends the audits, and notes what they have found.
func (p *player) endAudits() {
	if err := p.audits.end(); err != nil {
		p.miss(err)
	}
}

func (p *player) judge() {
	p.result.History = p.oracle.History()
	for _, v := range oracle.Validators() {
		p.result.Violations = append(p.result.Violations, v.Check(p.result.History)...)
	}
}
