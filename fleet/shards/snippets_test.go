package shards_test

import (
	"context"
	"io"

	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

// The following are the blocks of docs/replicas.md, with what they take for granted.

func snippetOfReplicas(ctx context.Context, coordinating kubernetes.Interface, clusters *fleet.Fleet) error {
	replica, err := shards.New(shards.Config{
		Client:    coordinating.CoordinationV1(), // a clientset of the coordinating cluster
		Namespace: "mirror",
		Name:      "mirror",
		Work:      clusters, // a *fleet.Fleet
	})
	if err != nil {
		return err
	}
	return replica.Run(ctx)
}

type transaction struct {
	epoch      int64
	checkpoint func() (io.ReadCloser, error)
	apply      func([]informer.Event) error
}

type fencedTable struct {
	inTransaction func(func(*transaction) error) error
}

// Load is called before anything is written.
func (s *fencedTable) Load(ctx context.Context) (checkpoint io.ReadCloser, err error) {
	epoch, _ := informer.EpochOf(ctx)
	err = s.inTransaction(func(tx *transaction) error {
		if tx.epoch > epoch {
			return shards.StaleEpoch(ctx, tx.epoch) // the replica gives the unit up, or begins again with a larger epoch
		}
		tx.epoch = epoch
		checkpoint, err = tx.checkpoint()
		return err
	})
	return checkpoint, err
}

func (s *fencedTable) OnBatch(ctx context.Context, events []informer.Event) error {
	epoch, _ := informer.EpochOf(ctx)
	return s.inTransaction(func(tx *transaction) error {
		if tx.epoch != epoch {
			return shards.StaleEpoch(ctx, tx.epoch) // nothing is written
		}
		return tx.apply(events)
	})
}

// tidy removes what this process keeps of a unit when it has given the unit up.
type tidy struct {
	*fleet.Fleet
	forget func(fleet.Unit)
}

func (w tidy) RunUnit(ctx context.Context, u fleet.Unit) error {
	defer w.forget(u)
	return w.Fleet.RunUnit(ctx, u)
}

var (
	_ = shards.Work(tidy{})
	_ = snippetOfReplicas
	_ = informer.BatchHandler(&fencedTable{})
)
