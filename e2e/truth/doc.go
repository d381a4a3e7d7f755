// Package truth records what was written to a cluster, from etcd itself, past the
// API server and all of its caches: the one account of it that outlives whatever
// a test does to the servers.
//
//	recorder, err := truth.Follow(ctx, c.EtcdURL(), resource, namespace)
//	defer recorder.Close()
//	recorder.Attach(judge)         // an *oracle.Oracle, for instance
//	_, err = recorder.Reach(ctx)   // it was told of everything until now
package truth
