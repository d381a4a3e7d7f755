package shards

import (
	"context"
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

// member keeps the member Lease of a replica.
type member struct {
	leases   coordinationv1client.LeaseInterface
	name     string
	identity string
	elector  *leaderelection.LeaderElector
	patience time.Duration // of one request

	mu     sync.Mutex
	labels map[string]string // to be written with each renewal
}

// timedLock is a LeaseLock whose requests end in time, and that says when a write that has
// succeeded was sent.
type timedLock struct {
	*resourcelock.LeaseLock
	patience time.Duration
	renewed  func(sent time.Time)
	failed   func(error) // nil after a success
	labels   func() map[string]string
	// conflicts counts the writes in a row that have met a conflict. One goroutine renews.
	conflicts int
}

func (l *timedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	return l.LeaseLock.Get(ctx)
}

func (l *timedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Create)
}

func (l *timedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Update)
}

func (l *timedLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	l.Labels = l.labels()
	sent := time.Now()
	err := do(ctx, record)
	if err == nil {
		l.renewed(sent)
	}
	// A conflict with announceNow is no failure: the elector reads the Lease and tries again.
	if !apierrors.IsConflict(err) {
		l.conflicts = 0
	} else if l.conflicts++; l.conflicts < manyConflicts {
		return err
	}
	l.failed(err)
	return err
}

func newMember(config Config, identity string, renewed func(sent time.Time), failed func(error)) (*member, error) {
	m := &member{
		leases:   config.Client.Leases(config.Namespace),
		name:     memberName(config.Name, identity),
		identity: identity,
		patience: config.RenewDeadline / 2,
		labels:   map[string]string{labelFleet: config.Name, labelRole: roleMember},
	}
	lock := &timedLock{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: config.Namespace, Name: m.name},
			Client:     config.Client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		patience: m.patience,
		renewed:  renewed,
		failed:   failed,
		labels:   m.currentLabels,
	}
	var err error
	m.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: config.LeaseDuration,
		RenewDeadline: config.RenewDeadline,
		RetryPeriod:   config.RetryPeriod,
		Name:          m.name,
		// Work follows the renewals, not these.
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	})
	return m, err
}

// run renews the Lease until ctx ends. An elector gives up after its renewal deadline; the next
// round takes the Lease up again.
func (m *member) run(ctx context.Context) {
	for ctx.Err() == nil {
		m.elector.Run(ctx)
	}
}

func (m *member) currentLabels() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.labels)
}

// announce sets labels of the member Lease. The next renewal writes them, and reaches also a server
// that is so slow that announceNow meets a renewal each time.
func (m *member) announce(labels map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.labels, labels)
}

// announceNow writes the labels beside the renewals, and returns the Lease.
func (m *member) announceNow(ctx context.Context) (lease *coordinationv1.Lease, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease, err = m.get(ctx)
		if err != nil {
			return err
		}
		if lease.Labels == nil {
			lease.Labels = map[string]string{}
		}
		maps.Copy(lease.Labels, m.currentLabels())
		lease, err = m.update(ctx, lease)
		return err
	})
	if apierrors.IsConflict(err) {
		return nil, nil // a renewal was faster, and has written them
	}
	return lease, err
}

func (m *member) get(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	return m.leases.Get(ctx, m.name, metav1.GetOptions{})
}

func (m *member) update(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	return m.leases.Update(ctx, lease, metav1.UpdateOptions{})
}

// remove deletes the Lease after the last renewal.
func (m *member) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	err := m.leases.Delete(ctx, m.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
