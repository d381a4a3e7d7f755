package script

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rvinformer/informer"
)

func parseHandler(a *args) action {
	m := manners{
		slow: a.namedDuration("slow", 0), errors: a.namedCount("errors", 0), panics: a.namedCount("panics", 0), exits: a.namedCount("exits", 0),
	}
	return func(_ context.Context, p *player) error {
		p.behaviour.set(m)
		return nil
	}
}

// warm fills the storage of the first process with what there is. The handler is taken to know
// that: later, it would know something else.
func (p *player) warm() error {
	if p.subject != nil {
		return errors.New("an informer was started already")
	}
	versions, err := p.server.ResourceVersions(pods, "")
	if err != nil {
		return err
	}
	stored := map[string]interface{}{}
	for key, version := range versions {
		stored[key] = version
	}
	p.process = p.newProcess()
	return p.process.storage.Replace(stored)
}

func parseStart(a *args) action {
	how := a.word("")
	if how != "" && how != "again" && how != "new" {
		a.fail(fmt.Errorf("%q is neither again nor new", how))
	}
	return func(_ context.Context, p *player) error { return p.start(how) }
}

func (p *player) start(how string) error {
	if p.run != nil {
		return errors.New("an informer runs already")
	}
	if p.process == nil || p.process.isDead() || how == "new" {
		p.process, how = p.newProcess(), ""
	}
	if p.subject == nil || how != "again" || p.subject.Once || p.shard != *p.following.Load() {
		subject, err := p.makeSubject()
		if err != nil {
			return fmt.Errorf("making an informer: %w", err)
		}
		p.subject, p.subjectRan = subject, false
	}
	if p.config.Decode == "metadata" {
		p.metadata.Store(true)
	}
	run, err := begin(p.process, p.subject)
	if err != nil {
		return err
	}
	p.run = run
	return nil
}

// makeSubject makes an informer of the process.
func (p *player) makeSubject() (*Subject, error) {
	if err := p.clearStore(); err != nil {
		return nil, err
	}
	of := p.shard
	p.following.Store(&of)
	subject, err := p.maker(p.setup(p.process))
	if err == nil {
		err = subject.validate()
	}
	return subject, err
}

// setup is what an informer of a process is made from.
func (p *player) setup(process *process) Setup {
	behaves := handler{process}
	door := gate{process: process, each: p.oracle.Handler(behaves), batch: p.oracle.BatchHandler(behaves)}
	s := Setup{
		Dialect:      p.script.server.Dialect,
		Mistyped:     p.script.mistyped,
		Config:       p.config,
		Client:       p.server.Config(),
		Resource:     pods,
		Handler:      door,
		BatchHandler: door,
		Storage:      process.storage,
		NewProcess:   !process.hasRun,
		Failed:       p.failed,
		GaveUp:       p.gaveUp,
		Travelled:    p.travelled.Load,
		Unread:       p.unread.Load,
		Stored:       p.oracle.Stored,
		Shard:        p.shard,
	}
	switch {
	case p.config.Journal:
		s.Checkpoint = journaledStore{checkpointStore{process}}
	case p.config.Checkpoint:
		s.Checkpoint = checkpointStore{process}
	}
	return s
}

// failed notes an error that an informer has reported.
func (p *player) failed(err error) {
	p.counts.failed()
	if _, unread := errors.AsType[*informer.ItemError](err); unread {
		p.unread.Store(true)
		p.lose()
	}
}

// lose notes that something is lost.
func (p *player) lose() {
	p.lost.Store(true)
	p.losses.Add(1)
}

func (p *player) gaveUp(key string) {
	p.lose()
	p.oracle.GaveUp(key)
}

func parseStop(a *args) action {
	within := a.namedDuration("within", 0)
	return func(ctx context.Context, p *player) error {
		switch {
		case p.run == nil:
			return errors.New("no informer runs")
		case p.behaviour.holds() && !p.process.isDead():
			return errors.New("calls are held, and the informer would wait for them: release them first")
		}
		begin := time.Now()
		if err := p.stop(ctx); err != nil {
			return err
		}
		if took := time.Since(begin); within > 0 && took > within {
			p.miss(fmt.Errorf("it took %v", took))
		}
		return nil
	}
}

func parseFuse(a *args) action {
	n := a.count()
	return func(_ context.Context, p *player) error {
		if p.run == nil {
			return errors.New("no informer runs")
		}
		p.process.light(n)
		return nil
	}
}

func parseKill(*args) action {
	return func(ctx context.Context, p *player) error { return p.kill(ctx) }
}

// kill kills the process, if it was not killed already.
func (p *player) kill(ctx context.Context) error {
	if p.run == nil {
		return errors.New("no informer runs")
	}
	p.process.die()
	return p.stop(ctx)
}

func parseFull(a *args) action {
	n := a.count()
	return func(_ context.Context, p *player) error {
		p.stableStore.oneFails.Store(int64(n))
		return nil
	}
}
