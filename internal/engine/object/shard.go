package object

import (
	"strings"

	"github.com/rvinformer/informer/api"
)

// InShard reports whether an object with a key, "namespace/name" or "name", is in a shard.
func InShard(s api.Shard, key, uid string) bool {
	return s.IsAll() || s.Includes(key[:max(strings.IndexByte(key, '/'), 0)], uid)
}
