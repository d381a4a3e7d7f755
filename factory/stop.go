package factory

import (
	"maps"
	"slices"
)

// Stop stops the informer of a key, whoever uses it, and forgets it: the next request for
// the key gets another one. Its leases are still to be released. The channel is
// closed when its goroutines have ended, and those of informers that had the key before; at once if
// there is none. That may take a minute where a client-go informer's server refuses connections;
// handlers of the informer may not wait for it.
func (f *Factory) Stop(key Key) (ended <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.removeLocked(func(l *life) bool { return l.key == key })
}

// StopCluster is Stop for all informers of a cluster.
func (f *Factory) StopCluster(cluster string) (ended <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.removeLocked(func(l *life) bool { return l.key.Cluster == cluster })
}

// removeLocked lets go of lives. One that is being built is none yet: it is
// as if it had been asked for afterwards. One that another has taken the place of, or that
// was let go of before, may still have a goroutine.
func (f *Factory) removeLocked(which func(*life) bool) (ended <-chan struct{}) {
	all := slices.Collect(maps.Keys(f.active))
	for _, l := range f.lives {
		if l.stage != building && !l.active() {
			all = append(all, l)
		}
	}
	removed := slices.DeleteFunc(all, func(l *life) bool { return !which(l) })
	for _, l := range removed {
		f.dropLocked(l)
	}
	return f.allDoneLocked(removed)
}

// allDoneLocked returns a channel that is closed when all lives have ended. A goroutine waits for those
// that have not.
func (f *Factory) allDoneLocked(lives []*life) <-chan struct{} {
	lives = slices.DeleteFunc(lives, func(l *life) bool { return l.stage == ended })
	if len(lives) == 0 {
		return closed
	}
	done := make(chan struct{})
	f.goLocked(func() {
		defer f.returned()
		defer close(done)
		for _, l := range lives {
			<-l.done
		}
	})
	return done
}

// dropLocked stops a life and forgets it.
func (f *Factory) dropLocked(l *life) {
	if f.lives[l.key] == l {
		delete(f.lives, l.key)
	}
	l.removed = true
	switch {
	case l.stage == idle:
		l.end()
	case l.active():
		l.cancel()
	}
}
