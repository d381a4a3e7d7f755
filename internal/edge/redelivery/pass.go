package redelivery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// pageSize is how many objects a page has.
const pageSize = 500

// pageSeconds is for how many seconds a page lasts, if there is a limit per second.
const pageSeconds = 5

var errUnversioned = errors.New("its objects have no resource version, by which an old state could be told from a new one")

// Run goes on with a job until it is done. The error is that of ctx, with which it can go on, or why
// it can not be done at all.
func Run(ctx context.Context, j *Job, server *source.Objects, informer Informer) error {
	after, done := j.Status().Position, j.Status().Done
	repeats := informer.Queue.Redeliver(after, done, informer.AtOnce, informer.Versions.Doubt)
	defer repeats.End()
	j.follow(repeats.Position)
	defer j.follow(nil)
	p := &pass{Job: j, Informer: informer, server: server, repeats: repeats, last: []byte(after)}
	if n := j.options.PerSecond; n > 0 {
		p.limiter = rate.NewLimiter(rate.Limit(n), max(1, n/10))
	}
	if len(j.options.Keys) > 0 {
		return p.keys(ctx, after)
	}
	return p.all(ctx)
}

// pass is one Run.
type pass struct {
	*Job
	Informer
	server  *source.Objects
	repeats *deltaqueue.Redelivery
	limiter *rate.Limiter // nil for none
	// last is the key up to which the list was handed on. Seen is the one that the list has shown
	// last, and began the one before the page.
	last, seen, began []byte
	// unsettled are the keys that were unsettled at the beginning, and that the list has not shown.
	unsettled map[string]bool
	// isUnsorted tells that a key came behind a greater one.
	isUnsorted bool
	// odd counts the answers in a row that show nothing, and have an odd version.
	odd listwatch.Insistence
	// brought tells that an object was handed on since a request has failed. Pages that only lead to
	// where the list was before do not count, as those of a list that fails at the same place again.
	brought bool
	// ahead is the newest version of what the watch has not brought yet: of an object that was listed,
	// or of an answer that shows an end.
	ahead string
}

// keys delivers the keys of the job again.
func (p *pass) keys(ctx context.Context, after string) error {
	known := map[string]bool{} // the deletion of these is delivered by the watch or a list, if they are deleted meanwhile
	for _, key := range p.options.Keys {
		known[key] = p.Queue.Knows(key)
	}
	for _, key := range p.options.Keys {
		if key <= after {
			continue
		}
		if err := p.pace(ctx); err != nil {
			return err
		}
		if err := p.repeats.Expect(ctx, key); err != nil {
			return err
		}
		if err := p.ask(ctx, key, !known[key]); err != nil {
			return err
		}
	}
	return p.finish(ctx)
}

// all delivers again what the job selects, and without a selector the deletions that the handler has
// not acknowledged.
func (p *pass) all(ctx context.Context) error {
	p.unsettled = map[string]bool{}
	for _, key := range p.Versions.Unsettled() {
		p.unsettled[key] = true
	}
	if err := p.list(ctx); err != nil {
		return err
	}
	if p.options.Selector != "" { // whose labels are not known
		return p.finish(ctx)
	}
	if err := p.repeats.Settled(ctx); err != nil {
		return err
	}
	p.stay()
	for _, key := range p.Versions.Unsettled() {
		if !p.unsettled[key] {
			continue
		}
		if err := p.repeats.Expect(ctx, key); err != nil {
			return err
		}
		if err := p.ask(ctx, key, false); err != nil {
			return err
		}
	}
	return p.finish(ctx)
}

func (p *pass) finish(ctx context.Context) error {
	if err := p.repeats.Settled(ctx); err != nil {
		return err
	}
	if p.ahead == "" {
		return nil
	}
	return p.await(ctx, p.ahead)
}

// list reads all pages.
func (p *pass) list(ctx context.Context) error {
	limit := int64(pageSize)
	if n := int64(p.options.PerSecond); n > 0 {
		limit = min(limit, n*pageSeconds)
	}
	for at := (listwatch.Listing{}); ; {
		p.began = append(p.began[:0], p.seen...)
		if err := p.repeats.Idle(ctx); err != nil { // no page is to wait for a list of the informer
			return err
		}
		isFirst := true
		page, err := p.server.Page(ctx, at.Continue, limit, func(it object.Item, unreadable error) error {
			if isFirst && it.Key != "" {
				isFirst = false
				if at.Circular("", it.Key) { // before it looks like an object that is not in the order of keys
					return listwatch.ErrCircular
				}
			}
			return p.take(ctx, it, unreadable)
		})
		if err == nil && page.Continue != "" && at.Circular(page.Continue, page.First) {
			err = listwatch.ErrCircular
		}
		if err == nil && page.Continue == "" && p.showsNothing() && p.isOdd(page.ResourceVersion) {
			err = oddError(page.ResourceVersion)
		}
		if errors.Is(err, listwatch.ErrCircular) {
			at = listwatch.Listing{}
		}
		p.note(ctx, err)
		if err != nil {
			if err := p.recover(ctx, err); err != nil {
				return err
			}
			at = p.goOnAfter(err, at)
			continue
		}
		if page.Continue == "" {
			return nil
		}
		at = at.Turned(page.Continue, page.First)
	}
}

// noteAhead notes the version by which the watch brings what is ahead. That of the list would not do
// for an object: where there are no bookmarks, a quiet watch does not come to it.
func (p *pass) noteAhead(resourceVersion string, standing deltaqueue.Standing) {
	if standing == deltaqueue.Ahead {
		p.ahead = rv.AtLeast(strings.Clone(resourceVersion), p.ahead)
	}
}

// recover waits before a request is made again. The error is that of ctx, or why it is not.
func (p *pass) recover(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errUnversioned), listwatch.Classify(err) == listwatch.BadRequest:
		return err
	}
	brought := p.brought
	p.brought = false
	return p.server.Rest(ctx, err, brought)
}

// goOnAfter returns the page to go on with after a failed request for another. A token that has
// expired may come with one for the newest state behind the same key.
func (p *pass) goOnAfter(err error, at listwatch.Listing) listwatch.Listing {
	if listwatch.Classify(err) == listwatch.Expired {
		var answer apierrors.APIStatus
		token := ""
		if errors.As(err, &answer) {
			token = answer.Status().Continue
		}
		at = listwatch.Listing{Continue: token}
	}
	p.seen = append(p.seen[:0], p.began...)
	if at.Continue == "" {
		p.seen = p.seen[:0]
	}
	return at
}

// take hands an object of the list on, unless that was done before.
func (p *pass) take(ctx context.Context, it object.Item, unreadable error) error {
	if it.Key == "" {
		p.unreadable(it, unreadable)
		return nil
	}
	if it.Key < string(p.seen) && !p.isUnsorted {
		p.isUnsorted = true
		p.disorder()
	}
	p.seen = append(p.seen[:0], it.Key...)
	if !p.isUnsorted && it.Key <= string(p.last) {
		return nil
	}
	switch {
	case unreadable != nil:
		p.unreadable(it, unreadable)
		return nil
	case it.Version.ResourceVersion == "":
		return errUnversioned
	}
	if err := p.pace(ctx); err != nil {
		return err
	}
	standing, err := p.repeat(ctx, it)
	if err != nil {
		return err
	}
	p.noteAhead(it.Version.ResourceVersion, standing)
	if standing == deltaqueue.Doubtful { // while the page is read, so that few keys are owed
		key := strings.Clone(it.Key)
		delete(p.unsettled, key)
		err = p.ask(ctx, key, false)
	}
	p.last = append(p.last[:0], it.Key...)
	p.bring()
	return err
}

// bring notes that an object was handed on. Of a list that is not sorted, it may have been before.
func (p *pass) bring() { p.brought = p.brought || !p.isUnsorted }

// pace waits until another object may be delivered.
func (p *pass) pace(ctx context.Context) error {
	if p.limiter == nil {
		return nil
	}
	return backoff.Sleep(ctx, p.limiter.Reserve().Delay())
}

// ask delivers what the server has of a key. If the handler refuses a change of the key while the
// server is asked, the answer may be older than that change, and the server is asked again. A
// second refusal ends this: the handler was given that change after the first request.
func (p *pass) ask(ctx context.Context, key string, named bool) error {
	asked, err := p.repeats.Ask(ctx, key)
	if err != nil {
		return err
	}
	for refusals := 0; refusals < 2; {
		standing, err := p.askOnce(ctx, key, named, asked)
		p.note(ctx, err)
		switch {
		case err != nil:
			if err := p.recover(ctx, err); err != nil {
				return err
			}
		case standing != deltaqueue.Doubtful:
			p.bring()
			return nil
		}
		before := asked.Letter
		if asked, err = p.repeats.Ask(ctx, key); err != nil {
			return err
		}
		if asked.Letter != before {
			refusals++
		}
	}
	p.repeats.Refuse(key)
	p.bring()
	return nil
}

func (p *pass) askOnce(ctx context.Context, key string, named bool, asked deltaqueue.Asked) (standing deltaqueue.Standing, err error) {
	found := false
	var nameless error // of an object that may be the one
	page, err := p.server.Ask(ctx, key, func(it object.Item, unreadable error) (err error) {
		switch {
		case it.Key == "" && unreadable != nil:
			nameless = unreadable
			return nil
		case it.Key != key:
			return nil
		case unreadable == nil && it.Version.ResourceVersion == "":
			return errUnversioned
		}
		found = true
		if unreadable != nil {
			p.unreadable(it, unreadable)
			return nil
		}
		standing, err = p.renew(ctx, it, asked)
		if err == nil {
			p.noteAhead(it.Version.ResourceVersion, standing)
		}
		return err
	})
	switch {
	case err != nil || found:
	case nameless != nil:
		p.unreadable(object.Item{Key: key}, nameless)
	case p.mayHave(key) && p.isOdd(page.ResourceVersion):
		err = oddError(page.ResourceVersion)
	default:
		if standing, err = p.renewAbsent(ctx, key, page.ResourceVersion, asked, named); err == nil {
			p.noteAhead(page.ResourceVersion, standing)
		}
	}
	return standing, err
}

// Error names the informer whose redelivery has failed.
func Error(informer string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redelivery of %s: %w", informer, err)
}
