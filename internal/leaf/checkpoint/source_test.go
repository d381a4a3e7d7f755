package checkpoint_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// sourceFields has the fields of a source, under their names in metadata.
var sourceFields = map[string]func(*checkpoint.Source) *string{
	"server":        func(s *checkpoint.Source) *string { return &s.Server },
	"resource":      func(s *checkpoint.Source) *string { return &s.Resource },
	"namespace":     func(s *checkpoint.Source) *string { return &s.Namespace },
	"labelSelector": func(s *checkpoint.Source) *string { return &s.LabelSelector },
	"fieldSelector": func(s *checkpoint.Source) *string { return &s.FieldSelector },
	"cluster":       func(s *checkpoint.Source) *string { return &s.Cluster },
}

func TestSourceCheckReportsEachDifference(t *testing.T) {
	saved := checkpoint.Source{
		Server: "https://one", Resource: "v1/pods", Namespace: "a", LabelSelector: "a=1", FieldSelector: "f=1", Cluster: "uid-1",
	}
	require.Equal(t, map[string]string{
		"server": "https://one", "resource": "v1/pods", "namespace": "a", "labelSelector": "a=1", "fieldSelector": "f=1", "cluster": "uid-1",
	}, saved.Metadata())
	require.Equal(t, saved, checkpoint.SourceFrom(saved.Metadata()))
	require.Empty(t, checkpoint.Source{}.Metadata())
	require.Equal(t, checkpoint.Source{Namespace: "a"}, checkpoint.SourceFrom(map[string]string{"namespace": "a", "resourceVersion": "7"}))

	require.NoError(t, saved.Check(saved))
	require.NoError(t, checkpoint.Source{}.Check(checkpoint.Source{}))
	for name, change := range sourceFields {
		for _, value := range []string{"", "another"} {
			wanted := saved
			*change(&wanted) = value
			if name == "cluster" && value == "" || name == "server" {
				require.NoError(t, wanted.Check(saved))
				require.NoError(t, saved.Check(wanted))
				continue
			}
			err := wanted.Check(saved)
			require.ErrorIs(t, err, api.ErrCheckpointSource)
			difference := api.CheckpointSourceDifference{Field: name, Saved: *change(&saved), Wanted: value}
			require.Equal(t, &api.CheckpointSourceError{Differences: []api.CheckpointSourceDifference{difference}}, err)
		}
	}
	for _, clusters := range [][2]string{{"", ""}, {"uid-1", ""}, {"", "uid-1"}, {"uid-1", "uid-2"}} {
		wanted, other := saved, saved
		wanted.Server, wanted.Cluster, other.Cluster = "https://two", clusters[0], clusters[1]
		require.ErrorContains(t, wanted.Check(other), `server is "https://one", not "https://two"`, "clusters %q", clusters)
	}
	err := checkpoint.Source{Server: "https://one", Resource: "v1/nodes"}.Check(saved)
	require.EqualError(t, err, `checkpoint of another source: resource is "v1/pods", not "v1/nodes", namespace is "a", not "", `+
		`labelSelector is "a=1", not "", fieldSelector is "f=1", not ""`)
	var e *api.CheckpointSourceError
	require.True(t, errors.As(err, &e))
	require.Len(t, e.Differences, 4)
}

// FuzzSource writes a source into a checkpoint, and reads it back: it equals itself then, and no
// other source.
func FuzzSource(f *testing.F) {
	f.Add("https://server:6443/prefix", "apps/v1/deployments", "n", "a=2,b=1", "metadata.name=x", "6f1c2a9e-0b5d-4c3e-8f77-0123456789ab")
	f.Add("", "", "", "", "", "")
	f.Add("server", "resource", "namespace", "a in (x,y),!b", "a=\\,b", "\xff\x00")
	f.Fuzz(func(t *testing.T, server, resource, namespace, labelSelector, fieldSelector, cluster string) {
		source := checkpoint.Source{
			Server: server, Resource: resource, Namespace: namespace,
			LabelSelector: labelSelector, FieldSelector: fieldSelector, Cluster: cluster,
		}
		var b bytes.Buffer
		w := checkpoint.NewWriter(&b)
		metadata := source.Metadata()
		for _, name := range slices.Sorted(maps.Keys(metadata)) {
			if err := w.Metadata(name, metadata[name]); err != nil {
				require.ErrorIs(t, err, checkpoint.ErrTooLong)
				return
			}
		}
		require.NoError(t, w.Close())
		written, _, err := readContent(&b, false)
		require.NoError(t, err)
		read := checkpoint.SourceFrom(written.Metadata)
		require.Equal(t, source, read)
		require.NoError(t, source.Check(read))
		for name, of := range sourceFields {
			field := of(&read)
			kept := *field
			*field += "x"
			switch err := source.Check(read); {
			case name == "cluster" && kept == "":
				require.NoError(t, err, "a cluster that was not known")
			case name == "server" && cluster != "":
				require.NoError(t, err, "another address of the cluster")
			default:
				require.ErrorIs(t, err, api.ErrCheckpointSource)
			}
			*field = kept
		}
	})
}
