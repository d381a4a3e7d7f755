package keeper

import (
	"context"
	"crypto/rand"
	"io"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// open is Begin without the save that a journal may need.
func (k *Keeper) open(ctx context.Context, acknowledged string) (resume string) {
	before, isFirst := k.subject.source, !k.hold.loaded
	before.Cluster = k.Cluster.UID()
	if k.journal != nil {
		k.journal.Stop() // another process may have used the store meanwhile
	}
	last := k.writer
	k.writer = rand.Text()
	var asLeft bool
	var failure error
	if !k.lockedStore.open(ctx, func(ctx context.Context) error {
		if asLeft, failure = k.isAsLeft(ctx, last); failure == nil && !asLeft {
			resume, failure = k.load(ctx)
		}
		return failure
	}) {
		if last != "" { // this run writes nothing, and what the last one has written may be in the store
			k.writer = last
		}
		return ""
	}
	k.Versions.Confine(k.Shard) // first: another informer may have followed less
	switch {
	case asLeft:
		return k.goOn(before, acknowledged)
	case failure != nil && !isFirst: // what is known is still that of before
		k.goOn(before, acknowledged)
		return ""
	}
	k.Cluster.Learn(k.subject.source.Cluster)
	return resume
}

// isAsLeft reports whether a later run goes on from what is known. It does if no other process has
// written to the store since the last run: else the handler's data is now as that process has saved it.
// It also does if the program has changed the known versions since, because the program knows its data.
func (k *Keeper) isAsLeft(ctx context.Context, last string) (asLeft bool, err error) {
	if !k.hold.loaded {
		return false, nil
	}
	writer := k.wrote // also if the store has nothing
	err = k.read(ctx, func(from io.Reader) (err error) {
		writer, err = checkpoint.LastWriter(from)
		return err
	})
	if err != nil {
		return false, err
	}
	asLeft = writer == k.wrote || writer == last || // whose last save may have failed, and be there
		k.Versions.Changes() != k.left.changes || k.Versions.Edits() != k.savedEdits
	if asLeft {
		k.wrote = writer
	}
	return asLeft, nil
}

// goOn returns the resource version from which a later run of the informer can go on.
func (k *Keeper) goOn(before checkpoint.Source, acknowledged string) (resume string) {
	if err := k.subject.source.Check(before); err != nil { // there is another cluster at the same address
		k.Cluster.Replace(k.subject.source.Cluster, k.Report.Gaps.Add)
		k.Report.Fail(err)
	}
	k.Cluster.Learn(k.subject.source.Cluster)
	return k.covered(acknowledged)
}
