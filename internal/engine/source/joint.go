package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/edge/fanout"
	"github.com/rvinformer/informer/internal/engine/object"
)

// joint is the part of one Source in a list that several read together.
type joint struct {
	tap *fanout.Tap[SharedEvent]
	// next is the continue token of the page that comes next, empty for that of a new list.
	next string
}

// here tells the others that the Source has asked for something, or will not.
func (s *Source) here() {
	if s.Here != nil {
		s.Here()
	}
}

// failed notes that the list or the watch has failed that several read together. They wait for each
// other before they ask again.
func (s *Source) failed(tap *fanout.Tap[SharedEvent]) {
	if here := tap.Again(); here != nil {
		s.here()
		s.Here = here
	}
}

// Join waits for the others that are about to list, and reports whether the list that opts ask for
// is read together with some of them. If so, the next Page or Watch reads it, and so do the calls
// of Page for its other pages. Such a list takes its turn of the Budget itself. The error is the
// cause of the end of ctx.
func (s *Source) Join(ctx context.Context, opts metav1.ListOptions) (joined bool, err error) {
	switch {
	case s.Shared == nil:
		return false, nil
	case s.joint != nil && s.joint.next == opts.Continue:
		return true, nil
	}
	s.leave()
	what := fmt.Sprint(s.Expected.Type(), s.Expected, startsWithObjects(opts), opts.ResourceVersion, opts.ResourceVersionMatch, opts.Limit, opts.Continue)
	tap, err := s.Shared.Gather(ctx, what, s.here, func() fanout.Watch[SharedEvent] { return s.newJointList(ctx, opts) })
	if tap == nil {
		return false, err
	}
	s.joint = &joint{tap: tap, next: opts.Continue}
	return true, nil
}

// leave ends the part of the Source in a joint list, if it reads one.
func (s *Source) leave() {
	if s.joint != nil {
		s.joint.tap.Close()
		s.joint = nil
	}
}

// jointPage reads a page of the joint list.
func (s *Source) jointPage(ctx context.Context, each Each) (page Page, err error) {
	defer func() {
		if err != nil || page.last() {
			s.leave()
		} else {
			s.joint.next = page.Continue
		}
	}()
	for {
		e, err := s.joint.tap.Take()
		switch {
		case errors.Is(err, fanout.ErrNothing):
			select {
			case <-s.joint.tap.Ready():
			case <-ctx.Done():
				return page, context.Cause(ctx)
			}
			continue
		case errors.Is(err, fanout.ErrLapsed):
			return page, ErrUnread
		case err != nil:
			s.failed(s.joint.tap)
			return page, err
		}
		s.heard(time.Now())
		if e.Value.page != nil {
			return *e.Value.page, nil
		}
		it, unreadable := s.readListed(&e.Value)
		page.Objects++
		if err := each(it, unreadable); err != nil {
			return page, err
		}
	}
}

// readListed makes an item of one of a joint list.
func (s *Source) readListed(e *SharedEvent) (object.Item, error) {
	s.read = e.arrived
	switch {
	case e.unreadable != nil:
		return object.Item{Key: e.key, Place: e.place}, e.unreadable
	case e.object != nil:
		return s.readDecoded(e.object.DeepCopyObject(), e.place)
	default:
		return s.readLent(e.item, e.listed, e.place)
	}
}

// last reports whether a joint list ends with a page. After one without objects, its readers pause.
func (p *Page) last() bool { return p.Continue == "" || p.Objects == 0 }

// jointList is a list, as its readers have it in common. It has a Source of its own, which takes
// its turn with other lists.
type jointList struct {
	source *Source
	opts   metav1.ListOptions
	ctx    context.Context
	cancel context.CancelFunc
}

// newJointList returns a list that does not use the Source. It is opened when it is read.
func (s *Source) newJointList(ctx context.Context, opts metav1.ListOptions) fanout.Watch[SharedEvent] {
	l := jointList{source: s.sibling(), opts: opts}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if startsWithObjects(opts) {
		return &jointWatchList{jointList: l}
	}
	p := &jointPages{jointList: l}
	p.next, p.stop = iter.Pull2(l.pages)
	return p
}

// Stop implements fanout.Watch.
func (l *jointList) Stop() { l.cancel() }

// jointPages are the pages of a list.
type jointPages struct {
	jointList
	next func() (fanout.Event[SharedEvent], error, bool)
	stop func()
}

// Next implements fanout.Watch. The last page ends with io.EOF.
func (p *jointPages) Next() (fanout.Event[SharedEvent], error) {
	e, err, ok := p.next()
	if !ok {
		return e, io.EOF
	}
	return e, err
}

// Close implements fanout.Watch.
func (p *jointPages) Close() {
	p.cancel()
	p.stop()
}

// pages yields the items of all pages, and the end of each page, or the error that ends them.
func (l *jointList) pages(yield func(fanout.Event[SharedEvent], error) bool) {
	for opts := l.opts; ; {
		page, err := l.page(opts, yield)
		end := fanout.Event[SharedEvent]{Value: SharedEvent{page: &page}, Bytes: eventOverhead}
		if err == errNotRead || !yield(end, err) || page.last() {
			return
		}
		opts = metav1.ListOptions{Limit: opts.Limit, Continue: page.Continue}
	}
}

// errNotRead says that a joint list is not read any more.
var errNotRead = errors.New("nobody reads")

// page yields the items of a page.
func (l *jointList) page(opts metav1.ListOptions, yield func(fanout.Event[SharedEvent], error) bool) (Page, error) {
	if err := l.source.BeginTurn(l.ctx); err != nil {
		return Page{}, err
	}
	defer l.source.EndTurn()
	return l.source.page(l.ctx, opts, func(it object.Item, unreadable error) error {
		e := shareable(&Change{Event: watch.Added, Item: it, Unreadable: unreadable})
		if it.Lent != nil {
			e.Value.listed = it.Lent.Listed
		}
		e.Value.place = it.Place
		l.source.Turn.Busy()
		read := yield(e, nil)
		l.source.Turn.Idle()
		if !read {
			return errNotRead
		}
		return l.ctx.Err()
	})
}

// jointWatchList is a watch-list. The first event tells that the server has answered.
type jointWatchList struct {
	jointList
	watch sharedWatch
	// began tells that the initial events have ended.
	began bool
}

// Next implements fanout.Watch.
func (l *jointWatchList) Next() (e fanout.Event[SharedEvent], err error) {
	switch {
	case l.began:
		return l.watch.Next()
	case l.watch.feed == nil:
		return e, l.open()
	}
	l.source.Turn.Idle()
	l.watch.feed.Expect(InitialPatience)
	if err := l.watch.feed.Next(l.ctx, &l.watch.told); err != nil {
		return e, err
	}
	e = shareable(&l.watch.told)
	if l.watch.told.InitialEnd {
		l.began, e.Begins = true, true
		l.source.EndTurn()
	}
	l.source.Turn.Busy()
	return e, nil
}

func (l *jointWatchList) open() (err error) {
	if err = l.source.BeginTurn(l.ctx); err != nil {
		return err
	}
	l.watch.ctx = l.ctx
	l.watch.feed, err = l.source.openOwn(l.ctx, l.opts, l.source.Patience.opening(l.opts))
	return err
}

// Close implements fanout.Watch.
func (l *jointWatchList) Close() {
	if l.watch.feed != nil {
		l.watch.feed.Close()
	}
	l.source.EndTurn()
	l.cancel()
}
