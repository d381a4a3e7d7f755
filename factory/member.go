package factory

import (
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/registry"
)

// Member is one informer of a factory as it was when Members returned it, for code that shows how
// it is.
type Member struct {
	factory  *Factory
	life     *life
	informer Informer
}

// Members returns all informers of the factory, in no order. It asks none of them how it is, so
// that it is cheap also for thousands: Statuses is simpler where that does not matter.
func (f *Factory) Members() []Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	members := make([]Member, 0, len(f.lives))
	for _, l := range f.lives {
		if l.stage != building {
			members = append(members, Member{factory: f, life: l, informer: l.informer})
		}
	}
	return members
}

// Informers returns the Members for a registry.Registry, in no order.
func (f *Factory) Informers() []registry.Informer {
	members := f.Members()
	all := make([]registry.Informer, len(members))
	for i := range members {
		m := &members[i]
		source, own := m.informer.(registry.Source)
		if !own {
			source = foreign{m}
		}
		all[i] = registry.Informer{Member: m, Source: source, Foreign: !own}
	}
	return all
}

// Labels are those of the Key.
func (m Member) Labels() registry.Labels { return m.Key().Labels() }

// Key is what the factory has the informer under.
func (m Member) Key() Key { return m.life.key }

// Informer is the informer, nil if it has ended.
func (m Member) Informer() Informer { return m.informer }

// Done is closed when the informer has ended. It is the same channel for each Member of one
// informer, and another one for the next informer of the same Key.
func (m Member) Done() <-chan struct{} { return m.life.done }

// Status returns how the informer is now.
func (m Member) Status() Status { return m.factory.statusOf(m.life) }

// foreign makes a Status for an informer that has none of its own.
type foreign struct{ member *Member }

func (f foreign) Status() informer.Status {
	s := f.member.Status()
	return informer.Status{
		Phase: s.Phase, Synced: s.Synced, Listed: s.Synced, LastError: s.LastError, LastErrorTime: s.LastErrorTime, FailingSince: s.FailingSince,
		SkippedError: s.SkippedError, CheckpointError: s.CheckpointError, Condition: s.Condition,
	}
}
