package informer

import "github.com/rvinformer/informer/api"

// ShardKey is the field of an object by which a resource set is divided: ShardByUID or
// ShardByNamespace.
type ShardKey = api.ShardKey

const (
	// ShardByUID divides by metadata.uid: shards are of about equal size.
	ShardByUID = api.ShardByUID
	// ShardByNamespace divides by metadata.namespace: what a namespace has is in one shard, and so
	// is all that has no namespace.
	ShardByNamespace = api.ShardByNamespace
)

// Shard is a part of a resource set: the objects whose hash is in a range. The zero value is the
// whole set. Package api has its fields.
type Shard = api.Shard

// ParseShard reads what String of a Shard has written: a shardSelector of one range, or nothing for
// the whole set.
func ParseShard(text string) (Shard, error) { return api.ParseShard(text) }
