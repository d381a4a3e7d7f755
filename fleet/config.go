package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
)

// DefaultDiscoverEvery is how often clusters are discovered by default.
const DefaultDiscoverEvery = 5 * time.Minute

// Config configures a Fleet. Configure is required; the zero value of everything else is a sensible
// default.
type Config struct {
	// Groups are the sets of resources to follow in each cluster. Default: one, of all resources.
	Groups []Group
	// Configure returns the configuration of the informer of a target: its handler, its checkpoint,
	// and so on. If they are not set, ListerWatcher, Budget, Storage and Shard are filled in.
	//
	// It is called each time an informer is about to be started, and may be called for several
	// units at a time. It may block: only its own unit waits. Its context has the values of the
	// context of RunUnit or Run, and ends when the unit is not to be followed any more. An error,
	// or a panic that utilruntime lets the process survive, is shown in the status of the cluster,
	// and Configure is called again after a pause that grows to about half a minute. So it is after
	// the error of a configuration that cannot work.
	//
	// A target comes again after its informer has ended, with the same Resource or with another
	// version of it. A checkpoint is of one version: its name should contain Target.Resource and
	// Target.Shard.
	Configure func(ctx context.Context, t Target) (informer.InformerConfig, error)
	// Known, if it is set, returns the resources whose objects the sink of a unit has from an
	// earlier time, in the versions that it had them in. It is called each time a unit is followed,
	// after the first complete discovery, and again after an error, as Configure is.
	//
	// A resource that the cluster has ceased to serve while nobody was looking has no informer that
	// could tell. Those of Known get one, if no discovery shows them and the server answers a list
	// with 404: it delivers the deletion of all objects that are in the Storage, or in the
	// checkpoint, that Configure returns. The Kind of the target is empty then. A server that
	// answers something else is asked again with each discovery. Default: what is gone before a
	// unit is followed is not told.
	Known func(ctx context.Context, u Unit) ([]schema.GroupVersionResource, error)
	// Factory has the informers. Default: a new one.
	Factory *factory.Factory
	// Budget is that of the informers. Default: a new one of 16 MiB.
	Budget *informer.Budget
	// DiscoverEvery is how often a cluster is discovered, give or take a fifth. A Retry-After is
	// obeyed for no longer. Default: DefaultDiscoverEvery.
	DiscoverEvery time.Duration
}

// Target is what one informer of a fleet follows. It is comparable.
type Target struct {
	Unit
	// Resource is in the version that is followed.
	Resource schema.GroupVersionResource
	// Kind is that of its objects.
	Kind string
	// Namespaced tells that its objects have namespaces.
	Namespaced bool
}

// String is for people: "east/all: apps/v1/deployments".
func (t Target) String() string { return fmt.Sprintf("%v: %s", t.Unit, resourceText(t.Resource)) }

// options are those of its informer in the factory.
func (t Target) options() factory.InformerOptions {
	return factory.InformerOptions{Cluster: t.Cluster, Variant: t.Group, Shard: t.Shard, InformerType: factory.ResourceVersionInformer}
}

// name is that of its informer in the log and on the status page.
func (t Target) name() string {
	key, err := factory.NewKey(t.Resource, t.options())
	if err != nil { // the factory says so, too
		return t.String()
	}
	return key.Labels().Path()
}

func resourceText(r schema.GroupVersionResource) string {
	return r.GroupVersion().String() + "/" + r.Resource
}

const defaultBudget = 16 << 20

// check fills in defaults, and says what is wrong.
func (c *Config) check() error {
	switch {
	case c.Configure == nil:
		return errors.New("fleet: Configure is required")
	case c.DiscoverEvery < 0:
		return fmt.Errorf("fleet: DiscoverEvery is %v", c.DiscoverEvery)
	case c.DiscoverEvery == 0:
		c.DiscoverEvery = DefaultDiscoverEvery
	}
	if len(c.Groups) == 0 {
		c.Groups = []Group{{}}
	}
	if c.Factory == nil {
		c.Factory = factory.New()
	}
	if c.Budget == nil {
		c.Budget = informer.NewBudget(defaultBudget)
	}
	return nil
}
