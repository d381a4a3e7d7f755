package known

import (
	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/object"
)

// surelyInShard is object.InShard for an object whose UID may not be known. It is false if the UID
// is needed and empty.
func surelyInShard(s api.Shard, key, uid string) bool {
	return s.IsAll() || (uid != "" || s.Key != api.ShardByUID) && object.InShard(s, key, uid)
}

// surelyOutside reports whether an object, whose UID may not be known, is not in a shard. It is
// false if the UID is needed and empty.
func surelyOutside(s api.Shard, key, uid string) bool {
	return !s.IsAll() && (uid != "" || s.Key != api.ShardByUID) && !object.InShard(s, key, uid)
}
