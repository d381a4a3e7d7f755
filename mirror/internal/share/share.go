// Package share lets several mirrors share the work: each follows the units that it owns.
package share

import (
	"fmt"
	"strings"
	"time"

	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/mirror/internal/clusters"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// Options say with whom the work is shared.
type Options struct {
	Leases        string // NAMESPACE/NAME of the Leases; empty = with nobody
	Kubeconfig    string // where the Leases are; empty = in the cluster that mirror runs in
	Identity      string // of this replica; empty = the host's name
	LeaseDuration time.Duration
	UserAgent     string
}

// Check says what is wrong with the name of the Leases.
func (o Options) Check() error {
	namespace, name, found := strings.Cut(o.Leases, "/")
	if !found || namespace == "" || name == "" {
		return fmt.Errorf("--share %s: it must be NAMESPACE/NAME", o.Leases)
	}
	return nil
}

// Replica prepares this mirror to share work with others.
func (o Options) Replica(work shards.Work) (*shards.Replica, error) {
	client, err := o.home()
	if err != nil {
		return nil, err
	}
	client.UserAgent = o.UserAgent
	client.QPS = -1 // a takeover writes a Lease for each unit
	leases, err := coordinationv1.NewForConfig(client)
	if err != nil {
		return nil, fmt.Errorf("--share-kubeconfig: %w", err)
	}
	namespace, name, _ := strings.Cut(o.Leases, "/")
	replica, err := shards.New(shards.Config{
		Client: leases, Namespace: namespace, Name: name, Identity: o.Identity, Work: work, LeaseDuration: o.LeaseDuration,
	})
	if err != nil {
		return nil, fmt.Errorf("--share %s: %w", o.Leases, err)
	}
	return replica, nil
}

// home is how to reach the cluster that has the Leases.
func (o Options) home() (*rest.Config, error) {
	if o.Kubeconfig != "" {
		at, err := clusters.InKubeconfig(o.Kubeconfig, nil)
		if err != nil {
			return nil, fmt.Errorf("--share-kubeconfig: %w", err)
		}
		return rest.CopyConfig(at[0].Client), nil
	}
	client, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("--share: %w; name the cluster that has the Leases with --share-kubeconfig", err)
	}
	return client, nil
}
