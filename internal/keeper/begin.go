package keeper

import (
	"context"

	"github.com/rvinformer/informer/internal/checkpoint"
)

// open is Begin without the save that a journal may need.
func (k *Keeper) open(ctx context.Context, acknowledged string) (resume string) {
	before, replaced := k.subject.source, false
	before.Cluster = k.Cluster.UID()
	opened := k.lockedStore.open(ctx, func(ctx context.Context) (err error) {
		resume, err = k.load(ctx)
		return err
	}, func(ctx context.Context) (err error) {
		resume, replaced, err = k.reload(ctx)
		return err
	})
	switch {
	case opened == closed:
		return ""
	case opened == reopened && !replaced:
		k.Versions.Confine(k.Shard) // first: another informer may have followed less
		return k.goOn(before, acknowledged)
	}
	k.Versions.Confine(k.Shard)
	return resume
}

// goOn returns the resource version from which a later run of the informer can go on.
func (k *Keeper) goOn(before checkpoint.Source, acknowledged string) (resume string) {
	if err := k.subject.source.Check(before); err != nil { // there is another cluster at the same address
		k.Cluster.Replace(k.subject.source.Cluster, &k.Report.Gaps)
		k.Report.Fail(err)
	}
	k.Cluster.Learn(k.subject.source.Cluster)
	return k.covered(acknowledged)
}
