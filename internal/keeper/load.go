package keeper

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/shard"
)

// load reads the content of the store. If there are no known versions, they are loaded, and else
// it only looks whether they include all that was saved. It returns the resource version to go on
// from.
func (k *Keeper) load(ctx context.Context) (resume string, err error) {
	from, err := k.Store.Load(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", report.OfStore("CheckpointStore.Load", "", err)
	}
	defer k.close(from)
	gaps := k.gaps()
	content, err := k.Versions.ReadSaved(from)
	if err != nil {
		return "", err
	}
	if errors.Is(content.Torn, checkpoint.ErrDamaged) {
		k.Report.Fail(content.Torn)
	}
	if k.Versions.Len() > 0 {
		if err := k.accept(content.Metadata); err != nil || !k.Versions.Includes(content) {
			return "", err
		}
		if err := k.vouch(ctx, content.Metadata, k.Versions.Sample(func(string) bool { return false }), false); err != nil {
			return "", err
		}
		return k.goOnFrom(content.Metadata, gaps), nil
	}
	if err := k.accept(content.Metadata); err != nil {
		return "", err
	}
	if err := k.vouch(ctx, content.Metadata, content.Sample(), content.Len() == 0); err != nil {
		return "", err
	}
	k.Versions.Adopt(content)
	k.saved.edits = k.Versions.Edits()
	k.saved.cluster = checkpoint.SourceFrom(content.Metadata).Cluster
	if k.journal != nil && content.Appendable && shardOf(content.Metadata) == k.Shard {
		k.journal.Continue(content.Begun(), content.Journal, content.Base)
	}
	return k.goOnFrom(content.Metadata, k.gaps()), nil
}

// shardOf returns the shard of a checkpoint that was accepted.
func shardOf(metadata map[string]string) shard.Shard {
	s, _ := shard.Parse(checkpoint.SourceFrom(metadata).Shard)
	return s
}

// goOnFrom returns the resource version of a checkpoint if the handler was shown everything in the
// shard up to it, but for the gaps. The version of a checkpoint that has only a part of the shard
// is one that the list which is needed must not be older than.
func (k *Keeper) goOnFrom(metadata map[string]string, gaps int64) (resume string) {
	resume, saved := metadata[checkpoint.MetadataResourceVersion], shardOf(metadata)
	if resume == "0" { // which a server takes for any version
		resume = ""
	}
	k.saved.resume, k.saved.at = resume, time.Now()
	if saved != k.Shard { // the checkpoint is to be one of this shard soon
		k.pending.changes.Add(1)
		k.pending.noteList()
	}
	switch {
	case resume == "":
		return ""
	case !saved.Contains(k.Shard):
		k.Report.Reach(resume)
		return ""
	}
	k.covers.complete(gaps)
	return resume
}
