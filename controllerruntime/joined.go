package controllerruntime

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// joined is the informers of several namespaces as one.
type joined struct {
	members []*member
	synced  *allDone
}

var _ cache.Informer = &joined{}

// join returns the informer of a kind: that of its only namespace, or all of them as one.
func (c *objectCache) join(members []*member) cache.Informer {
	if len(members) == 1 {
		return members[0].informer
	}
	j := &joined{members: members, synced: &allDone{cache: c}}
	for _, m := range members {
		j.synced.parts = append(j.synced.parts, part{m.informer.HasSyncedChecker(), m})
	}
	return j
}

// registrations are those of one handler at several informers, in the order of these.
type registrations struct {
	of     *joined
	each   []toolscache.ResourceEventHandlerRegistration
	synced *allDone
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r *registrations) HasSynced() bool {
	for _, each := range r.each {
		if !each.HasSynced() {
			return false
		}
	}
	return true
}

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r *registrations) HasSyncedChecker() toolscache.DoneChecker { return r.synced }

// register adds a handler to all informers, or to none.
func (j *joined) register(add func(cache.Informer) (toolscache.ResourceEventHandlerRegistration, error)) (toolscache.ResourceEventHandlerRegistration, error) {
	r := &registrations{of: j, synced: &allDone{cache: j.synced.cache}}
	for _, m := range j.members {
		each, err := add(m.informer)
		if err != nil {
			return nil, errors.Join(err, j.RemoveEventHandler(r))
		}
		r.each = append(r.each, each)
		r.synced.parts = append(r.synced.parts, part{each.HasSyncedChecker(), m})
	}
	return r, nil
}

func (j *joined) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return j.register(func(i cache.Informer) (toolscache.ResourceEventHandlerRegistration, error) {
		return i.AddEventHandler(handler)
	})
}

func (j *joined) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return j.register(func(i cache.Informer) (toolscache.ResourceEventHandlerRegistration, error) {
		return i.AddEventHandlerWithResyncPeriod(handler, period)
	})
}

func (j *joined) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return j.register(func(i cache.Informer) (toolscache.ResourceEventHandlerRegistration, error) {
		return i.AddEventHandlerWithOptions(handler, options)
	})
}

func (j *joined) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registrations)
	if !ok {
		return fmt.Errorf("registration %T is not one of this informer", handle)
	}
	var failures []error
	for i, each := range r.each {
		// The informers are those of the registration, which another joined of the kind may have
		// made.
		failures = append(failures, r.of.members[i].informer.RemoveEventHandler(each))
	}
	return errors.Join(failures...)
}

func (j *joined) AddIndexers(indexers toolscache.Indexers) error {
	for _, m := range j.members {
		if err := m.informer.AddIndexers(indexers); err != nil {
			return err
		}
	}
	return nil
}

func (j *joined) HasSynced() bool {
	for _, m := range j.members {
		if !m.informer.HasSynced() {
			return false
		}
	}
	return true
}

func (j *joined) HasSyncedChecker() toolscache.DoneChecker { return j.synced }

func (j *joined) IsStopped() bool {
	for _, m := range j.members {
		if !m.informer.IsStopped() {
			return false
		}
	}
	return true
}

// allDone is done when all of its parts are.
type allDone struct {
	cache *objectCache
	parts []part

	once sync.Once
	done chan struct{}
}

// part is the checker of one member. It cannot become done after the member has ended.
type part struct {
	checker toolscache.DoneChecker
	member  *member
}

// await waits until the part is done, and reports false if it never will be. A part that was done
// before its member ended is done.
func (p part) await() bool {
	select {
	case <-p.checker.Done():
		return true
	default:
	}
	select {
	case <-p.checker.Done():
		return true
	case <-p.member.ended:
		return false
	case <-p.member.removal.Done():
		return false
	}
}

func (d *allDone) Name() string {
	var names []string
	for _, p := range d.parts {
		names = append(names, p.checker.Name())
	}
	return strings.Join(names, ", ")
}

// Done waits for the parts in a goroutine, which ends with the informers. The cache's Start waits
// for it, if it has begun.
func (d *allDone) Done() <-chan struct{} {
	d.once.Do(func() {
		d.done = make(chan struct{})
		d.cache.goUntilStopped(func() {
			for _, p := range d.parts {
				if !p.await() {
					return
				}
			}
			close(d.done)
		})
	})
	return d.done
}
