package typed

import (
	"errors"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// laterGroups has the accessors of groups that client-go 0.36 does not have, as Lifecycle of 0.37.
// Their types cannot be named here, so the accessors are promoted from a factory of client-go, which
// has informers of its own for them. It is started, waited for and shut down with the Factory.
type laterGroups struct {
	informers.SharedInformerFactory
}

func newLaterGroups(s settings) laterGroups {
	switch {
	case s.shardSelector != nil: // the option is client-go's from 0.38 on, and cannot be named here
		s.client = noClient{why: errLaterGroupInShard}
	case s.client == nil:
		s.client = noClient{why: errLaterGroup}
	}
	options := append(s.resyncConfigs, informers.WithNamespace(s.namespace), informers.WithTweakListOptions(s.tweak),
		informers.WithTransform(s.transform), informers.WithInformerName(s.informerName))
	return laterGroups{informers.NewSharedInformerFactoryWithOptions(s.client, s.defaultResync, options...)}
}

// addSynced adds what a wait for the later groups has found.
func addSynced(to *cache.SyncResult, later cache.SyncResult) {
	for goType, synced := range later.Synced {
		if before, ok := to.Synced[goType]; ok { // InformerFor or ForResource has one too
			synced = synced && before
		}
		to.Synced[goType] = synced
	}
	if to.Err == nil {
		to.Err = later.Err
	}
}

// noClient is what informers of later groups are made with where they cannot be made.
type noClient struct {
	kubernetes.Interface
	why error
}

var (
	errLaterGroup        = errors.New("typed: the accessor of a group that client-go has added after 0.36 needs the client, which is nil: ForResource does not")
	errLaterGroupInShard = errors.New("typed: the accessor of a group that client-go has added after 0.36 cannot follow a shard: ForResource can")
)

// IsWatchListSemanticsUnSupported panics. Client-go asks each client of a new informer.
func (c noClient) IsWatchListSemanticsUnSupported() bool { panic(c.why) }
