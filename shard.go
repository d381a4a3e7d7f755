package informer

import "github.com/rvinformer/informer/internal/shard"

// ShardKey is the field of an object by which a resource set is divided: ShardByUID or
// ShardByNamespace.
type ShardKey = shard.Key

const (
	// ShardByUID divides by metadata.uid: shards are of about equal size. Two objects that had one
	// name one after the other, or an owner and what it owns, may be in different shards.
	ShardByUID = shard.ByUID
	// ShardByNamespace divides by metadata.namespace: what a namespace has is in one shard, and so
	// is all that has no namespace. Namespaces whose names differ only at their end, as numbered
	// ones do, may all be in one shard.
	ShardByNamespace = shard.ByNamespace
)

// Shard is a part of a resource set: the objects whose hash is in a range. The zero value is the
// whole set. It is comparable. The hash is that of kube-apiserver's server-side sharded list and
// watch (KEP-5866): the 64-bit FNV-1a of the text of the field. Its fields are:
//
//   - Key ShardKey: the field that is hashed. It is required unless the shard is the whole set.
//   - Start uint64: the first hash of the range.
//   - End uint64: the first hash behind the range. Zero is 2^64, the end of all hashes.
//
// String is the shard as a shardSelector, and empty for the whole set. Split(n) divides a shard
// into n parts whose ranges are equally long, IsAll and Includes(namespace, uid) say what is in it,
// and Validate what is wrong with it.
type Shard = shard.Shard

// ParseShard reads what String of a Shard has written: a shardSelector of one range, or nothing for
// the whole set.
func ParseShard(text string) (Shard, error) { return shard.Parse(text) }
