package fleet

import (
	"cmp"
	"fmt"

	"github.com/rvinformer/informer"
)

// Unit is a part of the work of a fleet: a shard of a group of resources in one cluster. It is
// comparable.
type Unit struct {
	// Cluster is the name that the cluster was added with.
	Cluster string
	// Group is the name of a group of resources.
	Group string
	// Shard is the part of each resource of the group.
	Shard informer.Shard
}

// String is for people and for names: "east/all", or "east/pods/shardRange(object.metadata.uid,
// '0x0000000000000000', '0x8000000000000000')".
func (u Unit) String() string {
	text := fmt.Sprintf("%s/%s", u.Cluster, u.Group)
	if u.Shard.IsAll() {
		return text
	}
	return text + "/" + u.Shard.String()
}

// Compare orders units by cluster, then by group, then by shard.
func (u Unit) Compare(other Unit) int {
	return cmp.Or(
		cmp.Compare(u.Cluster, other.Cluster),
		cmp.Compare(u.Group, other.Group),
		cmp.Compare(u.Shard.Key, other.Shard.Key),
		cmp.Compare(u.Shard.Start, other.Shard.Start),
		cmp.Compare(u.Shard.End-1, other.Shard.End-1), // 0 is the end of all hashes
	)
}
