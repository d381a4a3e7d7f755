package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

func TestAccept(t *testing.T) {
	half := api.Shard{Key: api.ShardByUID}.Split(2)
	quarter := half[0].Split(2)[0].String()
	followed := checkpoint.Source{Server: "https://a", Resource: "v1/pods", Shard: half[0].String(), Cluster: "u"}
	for name, c := range map[string]struct {
		saved   checkpoint.Source
		version string
		known   relation
		want    verdict
	}{
		"nothing is known":           {followed, "7", nothingKnown, verdict{useAll, "7", sameShard, "u"}},
		"the known versions go on":   {followed, "7", included, verdict{useResume, "7", sameShard, "u"}},
		"the known versions differ":  {followed, "7", differs, verdict{useNothing, "7", sameShard, "u"}},
		"it claims no version":       {followed, "", nothingKnown, verdict{useAll, "", sameShard, "u"}},
		"it claims version zero":     {followed, "0", nothingKnown, verdict{useAll, "", sameShard, "u"}},
		"it has all objects":         {of(followed, "", "u"), "7", nothingKnown, verdict{useAll, "7", widerShard, "u"}},
		"it has a part of the shard": {of(followed, quarter, "u"), "7", included, verdict{useResume, "7", partOfShard, "u"}},
		"it does not say its cluster": {
			of(followed, followed.Shard, ""), "7", nothingKnown, verdict{useAll, "7", sameShard, ""},
		},
	} {
		metadata := c.saved.Metadata()
		metadata[checkpoint.MetadataResourceVersion] = c.version
		got, err := accept(followed, metadata, c.known)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
	for name, saved := range map[string]checkpoint.Source{
		"another cluster": of(followed, followed.Shard, "w"),
		"another shard":   of(followed, half[1].String(), "u"),
		"no source":       {},
	} {
		_, err := accept(followed, saved.Metadata(), nothingKnown)
		require.ErrorIs(t, err, api.ErrCheckpointSource, name)
	}
}

// of is a source with another shard and cluster.
func of(s checkpoint.Source, shard, cluster string) checkpoint.Source {
	s.Shard, s.Cluster = shard, cluster
	return s
}
