// Package share lets several mirrors share the work: each follows the units that it owns.
package share

import (
	"fmt"
	"strings"

	"github.com/rvinformer/informer/fleet/shards"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say with whom the work is shared.
type Options struct {
	shards.Config        // without what Replica sets
	Leases        string // NAMESPACE/NAME of the Leases; empty = with nobody
	Kubeconfig    string // where the Leases are; empty = in the cluster that mirror runs in
}

// Replica prepares this mirror to share work with others.
func (o Options) Replica(work shards.Work) (*shards.Replica, error) {
	client, err := rest.InClusterConfig()
	if o.Kubeconfig != "" {
		client, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("--share: %w; --share-kubeconfig names the cluster that has the Leases", err)
	}
	client.QPS = -1 // a takeover writes a Lease for each unit
	leases, err := coordinationv1.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("--share-kubeconfig: %w", err)
	}
	o.Client, o.Work = leases, work
	o.Namespace, o.Name, _ = strings.Cut(o.Leases, "/")
	replica, err := shards.New(o.Config)
	if err != nil {
		return nil, fmt.Errorf("--share %s: %w", o.Leases, err)
	}
	return replica, nil
}
