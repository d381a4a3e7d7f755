package shards_test

import (
	"context"

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
	epoch int64
	apply func([]informer.Event)
}

type fencedTable struct {
	inTransaction func(func(*transaction) error) error
}

func (s *fencedTable) OnBatch(ctx context.Context, events []informer.Event) error {
	epoch, _ := informer.EpochOf(ctx)
	return s.inTransaction(func(tx *transaction) error {
		if tx.epoch > epoch {
			return shards.StaleEpoch(ctx, tx.epoch) // nothing is written, and the replica gives the unit up
		}
		tx.epoch = epoch
		tx.apply(events)
		return nil
	})
}

var (
	_ = snippetOfReplicas
	_ = informer.BatchHandler(&fencedTable{})
)
