package keeper

import (
	"context"

	"github.com/rvinformer/informer/internal/checkpoint"
)

// open is Begin without the save that a journal may need.
func (k *Keeper) open(ctx context.Context, acknowledged string) (resume string) {
	before := k.subject.source
	before.Cluster = k.Cluster.UID()
	switch k.lockedStore.open(ctx, func(ctx context.Context) (err error) {
		resume, err = k.load(ctx)
		return err
	}) {
	case reopened:
		k.Versions.Confine(k.Shard) // first: another informer may have followed less
		if k.journal != nil {
			k.journal.Stop() // another process may have used the store meanwhile
		}
		return k.goOn(before, acknowledged)
	case opened:
		k.Versions.Confine(k.Shard)
		return resume
	}
	return ""
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
