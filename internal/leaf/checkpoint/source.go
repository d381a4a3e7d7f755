package checkpoint

import (
	"github.com/rvinformer/informer/api"
)

// MetadataResourceVersion names the resource version in the metadata of a checkpoint.
const MetadataResourceVersion = "resourceVersion"

// MetadataRedelivery names the redelivery that is under way.
const MetadataRedelivery = "redelivery"

// MetadataWriter names the run that has written a checkpoint, or the newest part of its journal.
const MetadataWriter = "writer"

// MetadataShard names the shard.
const MetadataShard = "shard"

// Source identifies the set of objects that a checkpoint is about. A field that is not known
// is empty. An empty namespace or selector also stands for all objects.
type Source struct {
	// Server is the URL of the server: scheme, host and path.
	Server string
	// Resource is group/version/resource, or version/resource.
	Resource  string
	Namespace string
	// The selectors are normalized, so that equal ones are equal strings.
	LabelSelector, FieldSelector string
	// Shard is a shardSelector, empty for all objects.
	Shard string
	// Cluster is the UID of the namespace kube-system. A cluster gets it when it is created,
	// and keeps it. Clusters that were restored from one backup have the same one.
	Cluster string
}

// field is a field of a source, under its name in the metadata of a checkpoint.
type field struct {
	name  string
	value *string
}

func (s *Source) fields() []field {
	return []field{
		{"server", &s.Server},
		{"resource", &s.Resource},
		{"namespace", &s.Namespace},
		{"labelSelector", &s.LabelSelector},
		{"fieldSelector", &s.FieldSelector},
		{MetadataShard, &s.Shard},
		{"cluster", &s.Cluster},
	}
}

// Metadata returns the source as metadata of a checkpoint, without its empty fields.
func (s Source) Metadata() map[string]string {
	m := map[string]string{}
	for _, f := range s.fields() {
		if *f.value != "" {
			m[f.name] = *f.value
		}
	}
	return m
}

// SourceFrom returns the source that the metadata of a checkpoint names. It ignores other
// metadata.
func SourceFrom(metadata map[string]string) (s Source) {
	for _, f := range s.fields() {
		*f.value = metadata[f.name]
	}
	return s
}

// OfCluster returns the source without the set of objects: what is of the cluster as a whole.
func (s Source) OfCluster() Source { return Source{Server: s.Server, Cluster: s.Cluster} }

// Check returns an *api.CheckpointSourceError if saved, the source of a checkpoint, differs from s.
// A source that names a server and no set of objects is compared as that of the cluster as a whole.
//
// It compares the clusters only where both are known, because reading kube-system may be forbidden,
// or may fail for a while. One cluster may be reached at another address than before, so the servers
// matter unless both clusters are known, and the same. Two shards do not differ if they may have
// objects in common: what is in both can be used.
func (s Source) Check(saved Source) error {
	if saved.Server != "" && saved == saved.OfCluster() {
		s = s.OfCluster()
	}
	var differences []api.CheckpointSourceDifference
	theirs := saved.fields()
	same := s.Cluster != "" && s.Cluster == saved.Cluster
	for i, f := range s.fields() {
		wanted, saved := *f.value, *theirs[i].value
		switch {
		case wanted == saved, f.value == &s.Server && same, f.value == &s.Cluster && (wanted == "" || saved == ""),
			f.value == &s.Shard && meet(wanted, saved):
			continue
		}
		differences = append(differences, api.CheckpointSourceDifference{Field: f.name, Saved: saved, Wanted: wanted})
	}
	if len(differences) == 0 {
		return nil
	}
	return &api.CheckpointSourceError{Differences: differences}
}

// meet reports whether there may be objects in both shards.
func meet(a, b string) bool {
	first, err := api.ParseShard(a)
	if err != nil {
		return false
	}
	second, err := api.ParseShard(b)
	return err == nil && first.Meets(second)
}
