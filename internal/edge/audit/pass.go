package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

const (
	// maxSuspects is how many suspects wait, at the end of a page, before they are judged.
	maxSuspects = 1000
	// walkedAtOnce is about how many keys of the copy are looked at under its lock.
	walkedAtOnce = 1000
	// maxAsks is how often the server is asked for one key that changes all the time.
	maxAsks = 5
)

// suspect is a key that looks wrong. Server is what the list shows of it, empty if it does not show
// it.
type suspect struct {
	key    string
	server keytable.Version
}

func (s suspect) listed() bool { return s.server != keytable.Version{} }

// pass is one pass over a list.
type pass struct {
	Options
	gone   *deletions
	report report
	listed *keySet
	// first is the key of the first object of the page under way.
	first string
	// partial tells that the list has an object whose key is not known.
	partial  bool
	suspects []suspect
	// acknowledged tells that the informer has acknowledged the version of the list, and silent that it
	// has not said so for listPatience.
	acknowledged, silent bool
	began                time.Time
}

func newPass(o Options, gone *deletions) *pass {
	return &pass{Options: o, gone: gone, listed: newKeySet(o.Informer.Len()), began: time.Now()}
}

func (p *pass) run(ctx context.Context) error {
	before := p.Informer.Acknowledged()
	for at := (listwatch.Listing{}); ; {
		p.first = ""
		page, err := p.Server.Page(ctx, at.Continue, p.look)
		if err != nil {
			return err
		}
		if err := p.check(page, before); err != nil {
			return err
		}
		if len(p.suspects) >= maxSuspects {
			if err := p.judgeAll(ctx); err != nil {
				return err
			}
		}
		switch {
		case page.Continue == "":
			return p.finish(ctx)
		case at.Circular(page.Continue, p.first):
			return listwatch.ErrCircular
		}
		at = at.Turned(page.Continue, p.first)
		if err := p.rest(ctx); err != nil {
			return err
		}
	}
}

// check checks that the list is of one version, which can be compared.
func (p *pass) check(page Page, before string) error {
	r := &p.report
	switch {
	case r.ResourceVersion == "" && !rv.Ordered(page.ResourceVersion):
		return fmt.Errorf("the list has version %q: %w", page.ResourceVersion, api.ErrUnorderedVersion)
	case r.ResourceVersion == "" && rv.Compare(page.ResourceVersion, before) == rv.Older:
		return fmt.Errorf("the list has version %s, and the informer has acknowledged %s: %w", page.ResourceVersion, before, api.ErrServerRestored)
	case r.ResourceVersion == "":
		r.ResourceVersion = page.ResourceVersion
	case r.ResourceVersion != page.ResourceVersion:
		return fmt.Errorf("%w: %s and %s", ErrMixed, r.ResourceVersion, page.ResourceVersion)
	}
	return nil
}

// rest waits if the list comes faster than it may.
func (p *pass) rest(ctx context.Context) error {
	if p.BytesPerSecond <= 0 {
		return nil
	}
	due := time.Duration(float64(p.report.Bytes) / float64(p.BytesPerSecond) * float64(time.Second))
	return backoff.Sleep(ctx, due-time.Since(p.began))
}

// look looks at an object of the list.
func (p *pass) look(it Item) {
	p.report.Objects++
	p.report.Bytes += int64(it.Bytes)
	if it.Unreadable {
		p.report.Unreadable++
	}
	if it.Key == "" {
		p.partial = true
		return
	}
	if p.first == "" {
		p.first = strings.Clone(it.Key)
	}
	again := !p.listed.add(it.Key)
	if it.Unreadable {
		return
	}
	switch c := p.Informer.Compare(it.Key, it.Version); {
	case again && c.SameVersion && c.SameObject:
		p.suspects = slices.DeleteFunc(p.suspects, func(s suspect) bool { return s.key == it.Key })
	case again: // the list has several objects of this name, and the first is a suspect or right
	case !c.SameVersion || !c.SameObject:
		p.suspects = append(p.suspects, suspect{strings.Clone(it.Key), cloned(it.Version)})
	}
}

func cloned(v keytable.Version) keytable.Version {
	return keytable.Version{ResourceVersion: strings.Clone(v.ResourceVersion), UID: types.UID(strings.Clone(string(v.UID)))}
}

// finish judges what is left, and what the list did not show.
func (p *pass) finish(ctx context.Context) error {
	for cursor := keytable.Cursor(0); ; {
		cursor = p.Informer.LendFrom(cursor, walkedAtOnce, func(key string, v *keytable.Binary) {
			if !p.listed.has(key) && !p.newer(v.Version().ResourceVersion) {
				p.suspects = append(p.suspects, suspect{key: strings.Clone(key)})
				p.listed.add(key) // it may be lent again
			}
		})
		if len(p.suspects) >= maxSuspects || cursor == 0 {
			if err := p.judgeAll(ctx); err != nil {
				return err
			}
		}
		switch {
		case cursor == 0 && p.silent:
			return p.judgeBySecondList(ctx)
		case cursor == 0:
			return nil
		}
	}
}

// newer reports whether a version is newer than the list.
func (p *pass) newer(resourceVersion string) bool {
	return rv.Compare(resourceVersion, p.report.ResourceVersion) == rv.Newer
}

// judgeAll judges the suspects, once the informer has acknowledged the version of the list. If it does
// not say so, they are left for a second list.
func (p *pass) judgeAll(ctx context.Context) error {
	if len(p.suspects) > 0 && !p.acknowledged && !p.silent {
		if err := p.awaitVersion(ctx); err != nil {
			return err
		}
	}
	p.suspects = slices.DeleteFunc(p.suspects, p.isRight)
	if len(p.suspects) > 0 && !p.silent {
		if err := p.awaitRest(ctx); err != nil {
			return err
		}
	}
	if p.silent {
		return nil
	}
	for _, s := range p.suspects {
		if err := p.judge(ctx, s); err != nil {
			return err
		}
	}
	p.suspects = p.suspects[:0]
	return nil
}

// awaitVersion waits until the informer has acknowledged the version of the list, or has been silent
// for too long.
func (p *pass) awaitVersion(ctx context.Context) (err error) {
	p.silent, err = p.await(ctx, p.report.ResourceVersion)
	if err != nil {
		return fmt.Errorf("waiting until the informer has acknowledged version %s of the list: %w", p.report.ResourceVersion, err)
	}
	p.acknowledged = !p.silent
	return nil
}

// awaitRest waits until nothing more of the version of the list can come, or the informer has been silent
// for too long.
func (p *pass) awaitRest(ctx context.Context) error {
	before, _ := p.Informer.News()
	for since := time.Now(); !rv.NotNewer(p.report.ResourceVersion, p.Informer.Told()); {
		if err := backoff.Sleep(ctx, time.Second); err != nil {
			return fmt.Errorf("waiting until the informer has acknowledged all of version %s of the list: %w", p.report.ResourceVersion, err)
		}
		switch news, watches := p.Informer.News(); {
		case !watches || news != before:
			before, since = news, time.Now()
		case time.Since(since) >= listPatience:
			p.silent = true
			return nil
		}
	}
	p.suspects = slices.DeleteFunc(p.suspects, p.isRight)
	return nil
}

// errPatience ends a wait of listPatience.
var errPatience = errors.New("the watch tells nothing")

// await waits until the informer has acknowledged a version, or has been silent for listPatience: all
// that it has read is acknowledged, and its watch is open and tells nothing. An informer that waits for
// its handler or for its server is behind, and not silent.
func (p *pass) await(ctx context.Context, resourceVersion string) (silent bool, err error) {
	for {
		before, _ := p.Informer.News()
		limited, cancel := context.WithTimeoutCause(ctx, listPatience, errPatience)
		err := p.Informer.Await(limited, resourceVersion)
		cancel()
		if err == nil || context.Cause(limited) != errPatience {
			return false, err
		}
		isIdle := p.Informer.AwaitRead(limited) == nil // it does not wait, because the time is over
		if news, watches := p.Informer.News(); isIdle && watches && news == before {
			return true, nil
		}
	}
}

// isRight reports whether a suspect does not differ from the list, or only because it has changed since.
func (p *pass) isRight(s suspect) bool {
	own, has := p.Informer.Get(s.key)
	if !has {
		return !s.listed() || p.gone.after(s.key, p.report.ResourceVersion)
	}
	return p.newer(own.ResourceVersion) || s.listed() && own.ResourceVersion == s.server.ResourceVersion && own.SameObject(s.server)
}

// judge notes whether a suspect differs.
func (p *pass) judge(ctx context.Context, s suspect) error {
	own, has := p.Informer.Get(s.key)
	switch {
	case p.isRight(s):
	case has && s.listed():
		p.report.addStale(s.key, s.server, own)
	case has:
		return p.judgeUnlisted(ctx, s.key, own)
	default:
		return p.judgeUnknown(ctx, s)
	}
	return nil
}

// judgeUnlisted judges a key that the list did not show, unless that was one of the objects without
// a key.
func (p *pass) judgeUnlisted(ctx context.Context, key string, own keytable.Version) error {
	if p.partial {
		if _, has, err := p.ask(ctx, key); has || err != nil {
			return err
		}
	}
	p.report.addSuperfluous(key, own)
	return nil
}

// judgeUnknown judges an object of the list that the informer does not have. A deletion may carry
// the version of the state that it ended, and a list that finds one has none: so the server is
// asked whether the object is still there. Where many are missing, it is asked only if the informer
// may have deleted the object: with a request for each, the audit would take longer than the server
// keeps the list.
func (p *pass) judgeUnknown(ctx context.Context, s suspect) error {
	if p.report.MissingCount >= MaxDifferences && !p.gone.may(s.key) {
		p.report.addMissing(s.key, s.server)
		return nil
	}
	for range maxAsks {
		now, has, err := p.ask(ctx, s.key)
		switch {
		case err != nil || !has:
			return err
		case now == s.server:
			p.report.addMissing(s.key, now)
			return nil
		}
		// It has changed since, and the informer may be about to take that.
		if _, err := p.await(ctx, now.ResourceVersion); err != nil {
			return fmt.Errorf("waiting until the informer has acknowledged version %s of %q: %w", now.ResourceVersion, s.key, err)
		}
		if own, has := p.Informer.Get(s.key); has && rv.Compare(own.ResourceVersion, now.ResourceVersion) != rv.Older {
			return nil
		}
		s.server = now
	}
	return nil
}

// ask returns what the server has of a key now.
func (p *pass) ask(ctx context.Context, key string) (v keytable.Version, has bool, err error) {
	_, err = p.Server.Ask(ctx, key, func(it Item) {
		if it.Key == key {
			v, has = cloned(it.Version), true
		}
	})
	if err != nil {
		return v, false, fmt.Errorf("asking for %q: %w", key, err)
	}
	return v, has, nil
}
