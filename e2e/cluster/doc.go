// Package cluster runs a real etcd and a real kube-apiserver for tests, as
// processes of their own, so that a test can kill them, bring them back and
// compact their history.
//
//	binaries, err := cluster.Build(ctx, "")
//	c, err := cluster.Start(ctx, cluster.Options{Binaries: binaries})
//	defer c.Close()
//	client := kubernetes.NewForConfigOrDie(c.Config())
//
// There is no scheduler, no controller and no kubelet: an object stays as it
// was written, and a pod that is deleted is gone at once.
package cluster
