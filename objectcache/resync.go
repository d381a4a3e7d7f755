package objectcache

import (
	"slices"
	"time"

	"k8s.io/klog/v2"
)

// minimumResyncPeriod is the shortest resync period of a handler. It is client-go's, as are the
// rules of this file.
const minimumResyncPeriod = time.Second

// resyncs are the resync periods of the handlers.
type resyncs struct {
	// check is how often it is looked whether a resync is due: the shortest period that was asked
	// for before the start. Zero means that there are no resyncs.
	check    time.Duration
	handlers []*registration
}

// scheduleLocked gives a handler a resync period, as near to the one that it asks for as it can be.
func (i *Informer) scheduleLocked(r *registration, period time.Duration) {
	s := &i.resyncs
	if period > 0 && period < minimumResyncPeriod {
		r.logger.Info("Warning: resync period is too small. Changing it to the minimum allowed value", "resyncPeriod", period, "minimumResyncPeriod", minimumResyncPeriod)
		period = minimumResyncPeriod
	}
	if period > 0 && period < s.check {
		if i.started {
			r.logger.Info("Warning: resync period is smaller than resync check period and the informer has already started. Changing it to the resync check period", "resyncPeriod", period, "resyncCheckPeriod", s.check)
			period = s.check
		} else {
			s.check = period
			for _, other := range s.handlers {
				other.period = resyncPeriod(r.logger, other.requested, s.check)
			}
		}
	}
	r.requested, r.period = period, resyncPeriod(r.logger, period, s.check)
	r.due = time.Now().Add(r.period)
	s.handlers = append(s.handlers, r)
}

func resyncPeriod(logger klog.Logger, desired, check time.Duration) time.Duration {
	switch {
	case desired == 0:
		return 0
	case check == 0:
		logger.Info("Warning: the specified resyncPeriod is invalid because this shared informer doesn't support resyncing", "desired", desired)
		return 0
	case desired < check:
		logger.Info("Warning: the specified resyncPeriod is being increased to the minimum resyncCheckPeriod", "desired", desired, "resyncCheckPeriod", check)
		return check
	}
	return desired
}

func (s *resyncs) forget(r *registration) {
	s.handlers = slices.DeleteFunc(s.handlers, func(other *registration) bool { return other == r })
}

// dueForResync returns the handlers whose resync is due now, and sets when the next is.
func (i *Informer) dueForResync() (due []*registration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	for _, r := range i.resyncs.handlers {
		if r.period > 0 && !now.Before(r.due) {
			r.due = now.Add(r.period)
			due = append(due, r)
		}
	}
	return due
}
