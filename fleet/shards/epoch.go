package shards

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// epochLuck is how many bits of an epoch are random. The rest is the Unix time in seconds, so that
// epochs stay below 2^53 until 2106.
//
// Invariant: no two tenures have the same epoch, whatever Leases remember. Replicas that have seen
// the same epochs, or none, draw different ones. Two that draw in the same second and know nothing
// of each other would draw the same one once in two million times.
const epochLuck = 21

// nextEpoch returns an epoch above another one, and above those of all earlier seconds.
func nextEpoch(above int64, now time.Time) (int64, error) {
	second := max(now.Unix(), above>>epochLuck+1)
	if second > math.MaxInt64>>epochLuck {
		return 0, fmt.Errorf("there are no epochs above %d", above)
	}
	return second<<epochLuck | rand.Int64N(1<<epochLuck), nil
}

// epochOf is the epoch that a Lease of a unit states.
func epochOf(lease *coordinationv1.Lease) int64 {
	epoch, err := strconv.ParseInt(lease.Annotations[annotationEpoch], 10, 64)
	if err != nil {
		return int64(ptr.Deref(lease.Spec.LeaseTransitions, 0)) // as earlier versions of this package write it
	}
	return epoch
}

// setOwner writes an owner, and an epoch of its own above another one. The times are for people.
func setOwner(lease *coordinationv1.Lease, identity string, above int64) error {
	now := time.Now()
	epoch, err := nextEpoch(above, now)
	if err != nil {
		return fmt.Errorf("lease %s: %w", lease.Name, err)
	}
	annotate(lease, annotationEpoch, epoch)
	lease.Spec.HolderIdentity = &identity
	lease.Spec.AcquireTime, lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now)), ptr.To(metav1.NewMicroTime(now))
	return nil
}

// annotate writes a number.
func annotate(lease *coordinationv1.Lease, annotation string, value int64) {
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, annotation, strconv.FormatInt(value, 10))
}
