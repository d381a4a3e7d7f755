package typed

import (
	"fmt"

	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/objectcache"
)

// checkShard panics if the informers cannot follow the shard. A selector of everything is none.
func (s *settings) checkShard() {
	if s.shardSelector == nil || s.shardSelector.Empty() {
		s.shardSelector = nil
		return
	}
	if !s.asksConfig && !s.clientLists { // then the informers are asked, one by one
		return
	}
	var err error
	if s.shard, err = api.ShardOf(s.shardSelector); err != nil {
		panic(fmt.Sprintf("typed: WithShardSelector: %v", err))
	}
}

// inShard returns the options of an informer of the factory's shard.
func (s *settings) inShard(opts objectcache.Options) objectcache.Options {
	if s.shardSelector != nil {
		opts.Shard = s.shard
	}
	return opts
}

// setShard has an informer that has not started follow a shard.
func setShard(of cache.SharedIndexInformer, selector sharding.Selector) error {
	sharded, ok := of.(interface {
		SetShardSelector(selector sharding.Selector) error
	})
	if !ok {
		return fmt.Errorf("a %T cannot follow a shard: those of client-go can from 0.38 on, and those of WithRESTConfig always", of)
	}
	return sharded.SetShardSelector(selector)
}

// sharded sets the factory's shard. It panics with a *factory.RequestError if the informer cannot
// follow it, because it would have objects of others.
func (f *Factory) sharded(a ask, made cache.SharedIndexInformer) cache.SharedIndexInformer {
	if made == nil || f.shardSelector == nil {
		return made
	}
	if err := setShard(made, f.shardSelector); err != nil {
		panic(f.refusal(a, err))
	}
	return made
}
