package keeper

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// load reads the content of the store. If the known versions were not filled, or this is not the first
// run, they are loaded. Else it only looks whether they include all that was saved. It returns the
// resource version to go on from.
func (k *Keeper) load(ctx context.Context) (resume string, err error) {
	f, err := k.decode(ctx)
	if f == nil || err != nil {
		return "", err
	}
	v, err := accept(k.subject.source, f.content.Metadata, f.beside)
	if err != nil {
		return "", err
	}
	var objects []object.Known
	switch v.use {
	case useResume:
		objects = k.Versions.Sample(f.content.IsDead)
	default:
		objects = f.content.Sample()
	}
	empty := v.use == useAll && f.content.Len() == 0 && !f.content.HasDeadLetters()
	if err := k.vouch(ctx, f.content.Metadata, objects, empty, func() (lookup, error) { return f.content.Lookup, nil }); err != nil {
		return "", err
	}
	k.Cluster.Learn(v.cluster)
	if v.use == useNothing {
		k.wrote = f.content.Metadata[checkpoint.MetadataWriter]
		return "", nil
	}
	return k.adopt(f, v), nil
}

// found is what the store has.
type found struct {
	content known.Saved
	beside  relation
	// gaps were counted before the content was read.
	gaps int64
}

// decode reads the content of the store; nil if it has none.
func (k *Keeper) decode(ctx context.Context) (f *found, err error) {
	err = k.read(ctx, func(from io.Reader) (err error) {
		f = &found{gaps: k.gaps()}
		f.content, err = k.Versions.ReadSaved(from)
		return err
	})
	if f == nil || err != nil {
		return nil, err
	}
	if errors.Is(f.content.Torn, api.ErrCheckpointDamaged) {
		k.Report.Fail(f.content.Torn)
	}
	switch {
	case !k.Versions.IsFilled(), k.hold.loaded:
		f.beside = nothingKnown
	case k.Versions.Includes(f.content):
		f.beside = included
	default:
		f.beside = differs
	}
	return f, nil
}

// adopt acts on a verdict, and returns the resource version to go on from.
func (k *Keeper) adopt(f *found, v verdict) (resume string) {
	gaps := f.gaps
	isBeside := k.left.unsaved || k.Extra && k.hold.loaded // what is known is kept, too
	if v.use == useAll {
		if isBeside {
			k.Versions.AdoptBeside(f.content, k.Shard)
		} else {
			k.Versions.Adopt(f.content)
		}
		gaps = k.gaps() // to adopt is an edit
		k.savedEdits, k.saved.cluster = k.Versions.Edits(), v.cluster
		if k.journal != nil && f.content.Appendable && v.has == sameShard && !isBeside {
			metadata := f.content.Metadata
			k.journal.Continue(f.content.Begun(), f.content.Journal, f.content.Base)
			k.journal.Sign(k.writer, metadata[checkpoint.MetadataResourceVersion], metadata[checkpoint.MetadataRedelivery])
		}
	} else {
		k.Versions.AdoptDeadLetters(f.content)
	}
	k.saved.resume, k.saved.at, k.wrote = v.claims, time.Now(), f.content.Metadata[checkpoint.MetadataWriter]
	k.saved.redelivery = f.content.Metadata[checkpoint.MetadataRedelivery]
	if k.saved.redelivery != "" || !k.left.unsaved { // else there may be one that could not be saved
		k.Redelivery.Restore(k.saved.redelivery, v.has == sameShard)
	}
	k.saved.server = checkpoint.SourceFrom(f.content.Metadata).Server
	if v.has != sameShard || k.hasMoved() { // the checkpoint is to be one of this source soon
		k.pending.changes.Add(1)
		k.pending.noteList()
	}
	switch {
	case v.claims == "":
		return ""
	case v.has == partOfShard, v.has == widerShard && f.content.HasDeadLetters(), isBeside:
		// A dead letter may be of an object outside the shard that another one of its name in the
		// shard has replaced, and no watch from there tells the end of objects that the checkpoint
		// lacks. The list that is needed must not be older.
		k.Report.Reach(v.claims)
		return ""
	}
	k.covers.Begin(gaps)
	k.covers.End(true) // all in the shard was shown up to the version, but for the gaps
	return v.claims
}
