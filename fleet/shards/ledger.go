package shards

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer/fleet"
)

// atOnce is how many requests for Leases a replica has under way, and how many releases of units.
const atOnce = 16

// slots are taken by what is under way.
type slots chan struct{}

// take waits for a slot. The error is the cause with which ctx has ended.
func (s slots) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s slots) giveBack() { <-s }

// ledger reads and writes the Leases of units. What the server answers is noted.
type ledger struct {
	leases    coordinationv1client.LeaseInterface
	fleetName string
	identity  string
	patience  time.Duration // of one request
	seen      *observed
	requests  slots
	// releases are those under way: a release has its read and its write behind it before another one
	// begins.
	releases slots
	// releasing is the term in which units may be released. All releases share it, because many have
	// to wait for a slot: a server that is away holds up many units for no longer than one.
	releasing *terms

	taken, stale atomic.Int64 // how often a unit was taken, and an epoch refused by a sink
}

func newLedger(config Config, identity string, seen *observed) *ledger {
	return &ledger{
		leases:    config.Client.Leases(config.Namespace),
		fleetName: config.Name,
		identity:  identity,
		patience:  config.RenewDeadline / 2,
		seen:      seen,
		requests:  make(slots, atOnce),
		releases:  make(slots, atOnce),
		releasing: &terms{base: context.Background(), deadline: config.RenewDeadline, changed: func() {}},
	}
}

// request calls the API server, with a limit to its time, which begins when it is sent, and to how
// many are under way. The origin is that of the answer.
func (l *ledger) request(ctx context.Context, do func(ctx context.Context) (*coordinationv1.Lease, error)) (*coordinationv1.Lease, origin, error) {
	if err := l.requests.take(ctx); err != nil {
		return nil, origin{}, err
	}
	defer l.requests.giveBack()
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	from := l.seen.asking()
	lease, err := do(ctx)
	return lease, from, err
}

// rankedLease is the Lease of a unit as this replica has read or written it, with the rank of that.
type rankedLease struct {
	*coordinationv1.Lease
	rank uint64
}

// requestUnit is request for the Lease of a unit. The answer is noted, also that there is none.
func (l *ledger) requestUnit(ctx context.Context, name string, do func(ctx context.Context) (*coordinationv1.Lease, error)) (rankedLease, error) {
	lease, from, err := l.request(ctx, do)
	switch {
	case err == nil:
		return rankedLease{lease, l.seen.noteUnit(lease, from)}, nil
	case apierrors.IsNotFound(err):
		l.seen.noteGone(name, from)
	}
	return rankedLease{}, err
}

// acquire makes this replica the owner of a unit, with the next epoch. from is the Lease as it was
// observed. Each call that succeeds has its own epoch, also if this replica was the owner before,
// so that a write of before that comes late changes nothing.
func (l *ledger) acquire(ctx context.Context, u fleet.Unit, name string, from unitLease, weight int64) (rankedLease, error) {
	if from.text != "" && from.text != unitText(u) {
		return rankedLease{}, fmt.Errorf("lease %s is of the unit %q, not of %q", name, from.text, u)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name:            name,
		Labels:          unitLabels(l.fleetName, u),
		Annotations:     map[string]string{annotationUnit: unitText(u)},
		UID:             from.uid,
		ResourceVersion: from.version,
	}}
	setWeight(lease, cmp.Or(weight, from.weight))
	if err := setOwner(lease, l.identity, from.highest); err != nil {
		return rankedLease{}, err
	}
	lease.Spec.LeaseTransitions = ptr.To(max(from.transitions, from.transitions+1)) // for people
	written, err := l.requestUnit(ctx, name, func(ctx context.Context) (*coordinationv1.Lease, error) {
		if from.version == "" || from.deleted {
			lease.UID, lease.ResourceVersion = "", ""
			return l.leases.Create(ctx, lease, metav1.CreateOptions{})
		}
		return l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	})
	switch {
	case err == nil:
		l.taken.Add(1)
	case apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err):
		// Another replica was faster, or the watch does not show the Lease, because it has lost its
		// labels.
		_, _ = l.read(ctx, name)
	}
	return written, err
}

// read reads the Lease of a unit.
func (l *ledger) read(ctx context.Context, name string) (rankedLease, error) {
	return l.requestUnit(ctx, name, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return l.leases.Get(ctx, name, metav1.GetOptions{})
	})
}

// readAgain reads the Lease of a unit or member whose state is in doubt.
func (l *ledger) readAgain(ctx context.Context, name string) error {
	lease, from, err := l.request(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return l.leases.Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case err == nil:
		l.seen.note(lease, from)
	case apierrors.IsNotFound(err):
		l.seen.noteGone(name, from)
		return nil
	}
	return err
}

// raise gives a unit that this replica owns an epoch above another one.
func (l *ledger) raise(ctx context.Context, name string, epoch, above int64) (rankedLease, error) {
	lease, err := l.own(ctx, name, epoch)
	if err != nil {
		return rankedLease{}, err
	}
	if err := setOwner(lease, l.identity, max(epoch, above)); err != nil {
		return rankedLease{}, err
	}
	return l.update(ctx, lease)
}

// mayRelease extends the term of releases, when one begins or has succeeded, and returns it.
func (l *ledger) mayRelease() *term {
	l.releasing.renewed(time.Now())
	return l.releasing.get()
}

// release makes nobody the owner of a unit that this replica owns.
func (l *ledger) release(ctx context.Context, name string, epoch int64) error {
	if err := l.releases.take(ctx); err != nil {
		return err
	}
	defer l.releases.giveBack()
	lease, err := l.own(ctx, name, epoch)
	if err != nil {
		return err
	}
	lease.Spec.HolderIdentity = ptr.To("")
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	_, err = l.update(ctx, lease)
	return err
}

// weigh publishes the weight of a unit that this replica owns.
func (l *ledger) weigh(ctx context.Context, name string, epoch, weight int64) error {
	lease, err := l.own(ctx, name, epoch)
	if err != nil {
		return err
	}
	setWeight(lease, weight)
	_, err = l.update(ctx, lease)
	return err
}

func (l *ledger) update(ctx context.Context, lease *coordinationv1.Lease) (rankedLease, error) {
	// Without these it would not be found.
	metav1.SetMetaDataLabel(&lease.ObjectMeta, labelFleet, l.fleetName)
	metav1.SetMetaDataLabel(&lease.ObjectMeta, labelRole, roleUnit)
	return l.requestUnit(ctx, lease.Name, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return l.leases.Update(ctx, lease, metav1.UpdateOptions{})
	})
}

// errNotOwner says that a Lease names another owner, or another epoch.
type errNotOwner struct{ lease, holder string }

func (e errNotOwner) Error() string { return fmt.Sprintf("lease %s is held by %q", e.lease, e.holder) }

// own reads the Lease of a unit that this replica owns since an epoch. The error is an errNotOwner
// if it does not.
func (l *ledger) own(ctx context.Context, name string, epoch int64) (*coordinationv1.Lease, error) {
	lease, err := l.read(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, errNotOwner{lease: name}
	case err != nil:
		return nil, err
	case ptr.Deref(lease.Spec.HolderIdentity, "") != l.identity || epochOf(lease.Lease) != epoch:
		return nil, errNotOwner{lease: name, holder: ptr.Deref(lease.Spec.HolderIdentity, "")}
	}
	return lease.Lease, nil
}

func setWeight(lease *coordinationv1.Lease, weight int64) {
	if weight <= 0 {
		return
	}
	annotate(lease, annotationWeight, weight)
}

// confirm reads the Lease of a member that has expired, or is not known, and notes what it finds.
func (l *ledger) confirm(ctx context.Context, name string, known memberLease) error {
	lease, from, err := l.request(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return l.leases.Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		l.seen.confirmGone(name, known)
		return nil
	case err != nil:
		return err
	}
	l.seen.note(lease, from)
	if lease.ResourceVersion == known.version {
		l.seen.confirmDead(name, known.version)
	}
	return nil
}

// discard deletes the Lease of a member that is long dead, unless it has come back.
func (l *ledger) discard(ctx context.Context, dead memberLease) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	err := l.leases.Delete(ctx, dead.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &dead.uid, ResourceVersion: &dead.version},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
