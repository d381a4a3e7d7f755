package keeper

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/report"
	"github.com/rvinformer/informer/internal/shard"
)

// load reads the content of the store. If there are no known versions, they are loaded, and else
// it only looks whether they include all that was saved. It returns the resource version to go on
// from.
func (k *Keeper) load(ctx context.Context) (resume string, err error) {
	from, err := k.Store.Load(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		k.saved.shards = k.Extent.Number() // there is no checkpoint of another shard to replace
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
		return k.loadedVersion(content.Metadata, gaps), nil
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
	begun := content.Begun()
	saved, _ := shard.Parse(checkpoint.SourceFrom(content.Metadata).Shard) // which was accepted
	if followed, _ := k.Extent.Shard(); saved != followed || k.formers.narrow(saved) {
		// It is not known which keys are in the shard that the handler had only begun to take in. And what the journal has of objects that had left the
		// shard of the checkpoint was acknowledged by a call that was under way then: the handler may have forgotten them since.
		k.Versions.Forget(func(key string, v keytable.Version) bool {
			uid := string(v.UID)
			return v == keytable.Version{} || k.Extent.LeavesOut(key, uid) || k.formers.forgets(key, uid) || uid != "" && !shard.Of(saved).Includes(key, uid)
		})
		begun = func(func(string) bool) {}
	}
	if k.journal != nil && content.Appendable {
		k.journal.Continue(begun, content.Journal, content.Base)
	}
	return k.loadedVersion(content.Metadata, k.gaps()), nil
}

// loadedVersion returns the resource version of a checkpoint, and notes that everything up to it
// is known, but for the gaps.
func (k *Keeper) loadedVersion(metadata map[string]string, gaps int64) (resume string) {
	resume = metadata[checkpoint.MetadataResourceVersion]
	of, _ := shard.Parse(checkpoint.SourceFrom(metadata).Shard) // which was accepted
	var wanted shard.Shard
	if wanted, k.saved.shards = k.Extent.Shard(); of != wanted || k.formers.narrow(of) {
		k.saved.shards = noShard
	}
	if resume == "0" { // which a server takes for any version
		resume = ""
	}
	k.saved.resume, k.saved.at = resume, time.Now()
	if resume != "" {
		k.covers.complete(gaps)
		k.formers.resume(k.Extent, of)
	}
	return resume
}
