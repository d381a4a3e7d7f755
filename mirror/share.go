package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/rvinformer/informer/fleet/shards"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// userAgent names mirror to API servers.
const userAgent = "rvinformer-mirror"

// replica prepares this mirror to share the work with others, as --share says.
func (o options) replica(work shards.Work) (*shards.Replica, error) {
	client, err := o.home()
	if err != nil {
		return nil, err
	}
	client.UserAgent = userAgent
	client.QPS = -1 // a takeover writes a Lease for each unit
	leases, err := coordinationv1.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("--share-kubeconfig: %w", err)
	}
	namespace, name, _ := strings.Cut(o.share, "/")
	replica, err := shards.New(shards.Config{
		Client: leases, Namespace: namespace, Name: name, Identity: o.identity, Work: work, LeaseDuration: o.leaseDuration,
	})
	if err != nil {
		return nil, fmt.Errorf("--share %s: %w", o.share, err)
	}
	return replica, nil
}

// home is how to reach the cluster that has the Leases.
func (o options) home() (*rest.Config, error) {
	if o.shareKubeconfig != "" {
		at, err := endpointsOf(o.shareKubeconfig, nil)
		if err != nil {
			return nil, fmt.Errorf("--share-kubeconfig: %w", err)
		}
		return at[0].client, nil
	}
	client, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("--share: %w; name the cluster that has the Leases with --share-kubeconfig", err)
	}
	return client, nil
}

// sharing says with whom the work is shared.
func (o options) sharing(replica *shards.Replica) string {
	if replica == nil {
		return ""
	}
	return fmt.Sprintf(", sharing the work by the Leases %s as %s", o.share, replica.Identity())
}

// defaultIdentity is the name of the pod, where the Deployment says it; else shards takes that of
// the host.
func defaultIdentity() string { return os.Getenv("POD_NAME") }
