package keeper

import (
	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// relation is what the known versions are to those of a checkpoint.
type relation int

const (
	// nothingKnown: the known versions were not filled.
	nothingKnown relation = iota
	// included: they include all that was saved.
	included
	// differs: they do not.
	differs
)

// verdict is what is to become of a checkpoint.
type verdict struct {
	use use
	// claims is the resource version up to which everything in the shard of the checkpoint was
	// shown, empty if it claims none.
	claims string
	has    extent
	// cluster is the UID of the cluster that it is of, empty if it does not say that.
	cluster string
}

// use is what a checkpoint is used for.
type use int

const (
	// useNothing: what is known is not what was saved, so everything is listed.
	useNothing use = iota
	// useResume: what is known stays, and the run can go on from the version of the checkpoint.
	useResume
	// useAll: the versions of the checkpoint become the known ones.
	useAll
)

// extent is how much of the shard that is followed a checkpoint has.
type extent int

const (
	sameShard extent = iota
	// widerShard: all of it, and more.
	widerShard
	partOfShard
)

// accept decides about a checkpoint with this metadata, where the objects of wanted are followed.
// The error is an *api.CheckpointSourceError if it is of other objects.
func accept(wanted checkpoint.Source, metadata map[string]string, known relation) (v verdict, err error) {
	saved := checkpoint.SourceFrom(metadata)
	if err := wanted.Check(saved); err != nil {
		return v, err
	}
	v = verdict{claims: metadata[checkpoint.MetadataResourceVersion], has: extentOf(saved.Shard, wanted.Shard), cluster: saved.Cluster}
	if v.claims == "0" { // which a server takes for any version
		v.claims = ""
	}
	switch known {
	case nothingKnown:
		v.use = useAll
	case included:
		v.use = useResume
	}
	return v, nil
}

// extentOf returns how much of a shard a saved one has. Both can be parsed.
func extentOf(saved, wanted string) extent {
	has, _ := api.ParseShard(saved)
	needs, _ := api.ParseShard(wanted)
	switch {
	case has == needs:
		return sameShard
	case has.Contains(needs):
		return widerShard
	}
	return partOfShard
}
