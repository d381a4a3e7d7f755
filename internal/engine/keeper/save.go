package keeper

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/engine/journal"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// save saves what is acknowledged. Ended tells that nothing more will be.
func (k *Keeper) save(ctx context.Context, queue *deltaqueue.Queue, ended bool) error {
	if ended {
		if err := k.claimEmpty(ctx); err != nil {
			return err
		}
	}
	if k.hold.phase != owns {
		return nil
	}
	// It is read before the first entry, so that no entry is older than it was at this version.
	// And it is read before the gaps are counted, because a gap after it does not matter.
	now := func() point {
		redelivery, resume := k.Redelivery.Text(), SafePoint(queue, ended)
		cluster := k.Cluster.UID() // read before the gaps: a new one is one
		return point{k.covered(resume), cluster, k.address(), redelivery}
	}
	if ended && k.journal != nil {
		k.conclude()
	}
	if k.journal != nil && k.Versions.Edits() == k.savedEdits && !k.journal.Full() {
		if err := k.saveNews(ctx, now); !errors.Is(err, journal.ErrUnusable) {
			return err
		}
	}
	return k.saveAll(ctx, now)
}

// saveNews appends what is new to the journal. The error is journal.ErrUnusable if it cannot.
func (k *Keeper) saveNews(ctx context.Context, now func() point) error {
	revert, began := k.pending.take(), time.Now()
	p, err := now(), journal.ErrUnusable
	if p.cluster == k.saved.cluster && p.server == k.saved.server { // else it is not what the checkpoint is of
		err = k.journal.Commit(ctx, p.resume, p.redelivery)
	}
	if err != nil {
		revert()
		return err
	}
	k.noteSaved(p, began)
	k.wrote = k.writer
	return nil
}

// saveAll saves all known versions.
func (k *Keeper) saveAll(ctx context.Context, now func() point) error {
	if k.journal != nil {
		k.journal.Flush(ctx)
	}
	edits := k.Versions.Edits()
	var size int64
	var restart journal.Restart
	err := k.write(ctx, func(w io.Writer) (p point, err error) {
		p = now()
		cw, begun := checkpoint.NewWriter(w), k.Versions.UnsettledUnknown()
		if k.journal != nil {
			cw, begun = checkpoint.NewJournaledWriter(w), nil // the journal has them
			if restart, err = k.journal.Restart(ctx, k.Versions.ReadUnsettled); err != nil {
				return p, err
			}
		} else if letters := k.Versions.DeadLetters(); len(letters) > 0 {
			cw, restart.Tail = checkpoint.NewJournaledWriter(w), tailOf(letters)
			begun = slices.DeleteFunc(begun, func(key string) bool {
				_, dead := slices.BinarySearchFunc(letters, key, func(letter api.DeadLetter, key string) int { return strings.Compare(letter.Key, key) })
				return dead
			})
		}
		metadata := k.metadata(p)
		metadata[checkpoint.MetadataWriter] = k.writer
		err = k.Versions.WriteCheckpoint(cw, metadata, begun)
		size = cw.Written()
		if err == nil && len(restart.Tail) > 0 {
			_, err = w.Write(restart.Tail)
		}
		return p, err
	})
	if err == nil {
		k.savedEdits, k.wrote = edits, k.writer
	}
	if k.journal != nil {
		k.journal.Saved(ctx, restart, size, err)
	}
	return err
}

// tailOf is the journal behind a checkpoint in a store that takes none: it has the dead letters.
func tailOf(letters []api.DeadLetter) []byte {
	var tail checkpoint.Journal
	for _, letter := range letters {
		tail.AddDeadLetter(letter)
	}
	return tail.Take(nil)
}

// Bury writes down a dead letter that the versions have, before what comes after it counts as
// acknowledged.
func (k *Keeper) Bury(ctx context.Context, letter api.DeadLetter) {
	if k.journal != nil {
		k.journal.Bury(ctx, letter)
		return
	}
	k.pending.noteList()
}

// hasBegun reports whether there are keys that the handler may have begun to take in.
func (k *Keeper) hasBegun() bool { return k.journal != nil && len(k.journal.Begun()) > 0 }

// conclude withdraws the keys for which no handler was called, at the end of a run: those that
// were written down ahead, and are not delivered any more.
func (k *Keeper) conclude() {
	for _, key := range k.journal.Begun() {
		version, exists := k.Versions.Get(key)
		switch doubtful, _ := k.Versions.Doubt(key); {
		case doubtful:
		case exists:
			k.journal.Acknowledge(key, version, keytable.Comparison{})
		default:
			k.journal.Forget(key, nil)
		}
	}
}
