// Package fleet follows many clusters in one process.
//
// A [Fleet] has clusters, which come and go while it runs, and groups of resources, which it
// follows in each of them. It discovers what a cluster serves, starts an informer for each resource
// that a group names, and ends it when the resource is gone. All informers are of one factory and
// share one Budget.
//
//	f, err := fleet.New(fleet.Config{
//		Groups: []fleet.Group{{Resources: []string{"*"}, Except: []string{"secrets", "events", "*.coordination.k8s.io"}}},
//		Configure: func(ctx context.Context, t fleet.Target) (informer.InformerConfig, error) {
//			return informer.InformerConfig{BatchHandler: handlerFor(t)}, nil
//		},
//	})
//	...
//	err = f.Add("east", config) // before Run or while it runs
//	f.Run(ctx)                  // until ctx ends
//	...
//	<-f.Remove("east")          // its last handler call has returned
//
// # Words
//
// A group is a named set of resources. A unit is the work that one owner has: a shard of a group in
// one cluster. The units follow from the names of clusters and groups alone, so that they are known
// without asking any cluster. Run follows all units; RunUnit follows one, for programs that share
// out the units among processes, as package fleet/shards does. A target is one resource of a unit,
// and has one informer. Discovery is the question to a cluster what it serves; it is complete if no
// part of the answer is missing.
//
// # Resources that come and go
//
// Each resource is followed in one version: the one that its server prefers, unless a pattern names
// another one. What is only listed or only watched is left out, and so are subresources.
//
// Discovery is repeated every few minutes. Where it is allowed, CustomResourceDefinitions and
// APIServices are watched, and a change to one of them repeats discovery after about a second.
//
//   - A resource that is new gets an informer.
//   - A resource that is gone loses its informer. Handlers are told that its objects are deleted,
//     by the watch that saw it or by the fleet, which does so when two complete discoveries lack
//     the resource and the server answers a list of it with 404.
//   - A resource with another preferred version, or whose version is not served any more, gets a
//     new informer in place of the old one. The handler gets each object once more, in the new
//     version, and the deletion of objects that went meanwhile.
//   - Discovery that fails, wholly or in part, ends nothing. A broken aggregated API is shown in
//     Cluster.Missing, and its informers go on. Neither does anything end when only the permission
//     for discovery is lost.
//
// Handlers are told nothing when a cluster is removed.
//
// # Clusters that fail
//
// A cluster that is dead, slow, forbidden or huge costs the others nothing. It is discovered by one
// request per pause; pauses grow to about half a minute, and last as long as a Retry-After says, up
// to DiscoverEvery. Before it has answered it has no informers. Lists take turns by cluster, within
// the Budget.
//
// # Cost
//
// A cluster with a unit that runs has one goroutine, one for each unit, one for each informer, and
// one for each of the two watches that repeat discovery. HTTP/2 has one for each watch. The page
// docs/fleet.md has the memory.
package fleet
