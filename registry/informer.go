package registry

import "github.com/rvinformer/informer"

// Source is an informer that can be shown: an informer.ResourceVersionInformer, an
// *informer.SharedResourceVersionInformer, an *informer.HandlerRegistration, an
// *objectcache.Informer, or anything else with a Status. It may also have
//
//	DeadLetters() []informer.DeadLetter
//	Handlers() []*informer.HandlerRegistration
//
// Then the status page shows its dead letters and its handlers.
type Source interface{ Status() informer.Status }

// Informer is one informer of a Registry as it was when Informers returned it.
type Informer struct {
	// Member is a *factory.Member for an informer of a factory.
	Member
	Source
	// Foreign tells that the informer is client-go's or has ended: of its Status, only the phase, the
	// errors and the condition are known, and whether it has synced.
	Foreign bool
}

// Member is the place of an informer in a registry.
type Member interface {
	// Labels tell the informer apart. Several informers may have the same.
	Labels() Labels
	// Done is closed when the informer has ended or was removed. It is the same channel each time,
	// and no other informer has it.
	Done() <-chan struct{}
}

// Factory has informers that come and go: a *factory.Factory, or another *Registry.
type Factory interface {
	// Informers returns those that it has now, in a new slice. It asks them nothing.
	Informers() []Informer
}
