package shards

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/rvinformer/informer/fleet"
)

// Work is what replicas share. A *fleet.Fleet is one.
type Work interface {
	// Units are all units, in all replicas the same.
	Units() []fleet.Unit
	// Changed is closed at the next change of Units.
	Changed() <-chan struct{}
	// RunUnit does the work of a unit until ctx ends. It returns when nothing of it is under way
	// any more. The context has an epoch: informer.EpochOf.
	RunUnit(ctx context.Context, u fleet.Unit) error
}

// Config configures a Replica. Client, Namespace, Name and Work are required.
type Config struct {
	// Client reaches the coordinating cluster; the CoordinationV1() of a clientset is one. Its
	// rest.Config should have QPS -1, because client-go's default of five requests per second makes
	// taking over hundreds of units take minutes.
	Client coordinationv1client.LeasesGetter
	// Namespace is where the Leases are.
	Namespace string
	// Name is that of the fleet. Replicas of one fleet have the same Namespace and Name. It is a
	// DNS label of at most 40 characters.
	Name string
	// Identity names this replica, for people and for the plan: a replica that is started again
	// under its Identity gets the same units. It is unique among the replicas that run: Status.Problems
	// says if it is not. Default: the host's name, which is the pod's in a pod.
	Identity string
	// Work is what to share.
	Work Work

	// LeaseDuration is how long other replicas wait for a renewal before they take units over. It
	// is a whole number of seconds. Default: 15 seconds.
	LeaseDuration time.Duration
	// RenewDeadline is how long work goes on without a renewal. The difference to LeaseDuration is
	// the time that RunUnit has to end before another owner may start. Default: two thirds of
	// LeaseDuration.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two renewals. Default: a fifth of RenewDeadline.
	RetryPeriod time.Duration
	// SettleTime is how long a new member must have been alive before it gets units. Default: twice
	// RetryPeriod.
	SettleTime time.Duration

	// Weight is what a unit that this replica owns costs, in any measure that all replicas share,
	// for instance its number of objects. Zero means not known yet. The plan uses it rounded up to
	// a power of two. It is published when the unit is taken, and every ten minutes if it has
	// changed by a factor of two. Default: all units weigh the same.
	Weight func(fleet.Unit) int64
}

// The defaults of Config.
const (
	defaultLeaseDuration = 15 * time.Second
	maxNameLength        = 40
)

// complete checks the configuration and fills in its defaults.
func (c Config) complete() (Config, error) {
	switch {
	case c.Client == nil:
		return c, errors.New("shards: Client is missing")
	case c.Work == nil:
		return c, errors.New("shards: Work is missing")
	}
	if problems := validation.IsDNS1123Label(c.Namespace); len(problems) > 0 {
		return c, fmt.Errorf("shards: Namespace %q: %s", c.Namespace, strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Label(c.Name); len(problems) > 0 {
		return c, fmt.Errorf("shards: Name %q: %s", c.Name, strings.Join(problems, "; "))
	}
	if len(c.Name) > maxNameLength {
		return c, fmt.Errorf("shards: Name %q has more than %d characters", c.Name, maxNameLength)
	}
	if c.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("shards: Identity is missing, and the host has no name: %w", err)
		}
		c.Identity = host
	}
	if c.Weight == nil {
		c.Weight = func(fleet.Unit) int64 { return 1 }
	}
	return c.completeTimes()
}

// completeTimes checks the times, each of which must leave room for the next shorter one.
func (c Config) completeTimes() (Config, error) {
	defaultTo(&c.LeaseDuration, defaultLeaseDuration)
	defaultTo(&c.RenewDeadline, c.LeaseDuration*2/3)
	defaultTo(&c.RetryPeriod, c.RenewDeadline/5)
	defaultTo(&c.SettleTime, 2*c.RetryPeriod)
	switch {
	case c.LeaseDuration < time.Second || c.LeaseDuration%time.Second != 0:
		return c, fmt.Errorf("shards: LeaseDuration is %v, and must be a whole number of seconds", c.LeaseDuration)
	case c.RenewDeadline <= 0 || c.RenewDeadline >= c.LeaseDuration:
		return c, fmt.Errorf("shards: RenewDeadline is %v, and must be shorter than LeaseDuration, which is %v", c.RenewDeadline, c.LeaseDuration)
	case c.RetryPeriod <= 0 || 2*c.RetryPeriod > c.RenewDeadline:
		return c, fmt.Errorf("shards: RetryPeriod is %v, and must be at most half of RenewDeadline, which is %v", c.RetryPeriod, c.RenewDeadline)
	case c.SettleTime < 0:
		return c, fmt.Errorf("shards: SettleTime is %v", c.SettleTime)
	}
	return c, nil
}

func defaultTo(d *time.Duration, standard time.Duration) {
	if *d == 0 {
		*d = standard
	}
}
