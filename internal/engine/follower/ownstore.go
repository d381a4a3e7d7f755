package follower

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// ownStore notices that a resource was restored from a backup whose etcd, and versions, are its own.
// The namespace kube-system does not tell that, and the watch goes on from a version of the future: its
// bookmarks are older than that, or do not come.
type ownStore struct {
	// bookmarks tells that the watch has had a bookmark.
	bookmarks bool
	// settled tells that the resource has answered.
	settled bool
}

// note notes a change, and reports whether the resource is to be asked: a bookmark is older than what
// the watch began from.
func (o *ownStore) note(c *source.Change, began string) (asks bool) {
	if c.Event != watch.Bookmark || c.Unreadable != nil {
		return false
	}
	o.bookmarks = true
	return !o.settled && rv.Compare(c.Bookmark, began) == rv.Older
}

// noteOwn notes a change, and asks the resource if the change raises doubt.
func (w *watching) noteOwn(ctx context.Context, c *source.Change) (over bool, err error) {
	if began := w.state.(listwatch.Watching).ResourceVersion; !w.own.note(c, began) {
		return false, nil
	}
	return w.askOwn(ctx)
}

// askOwn asks the resource itself whether it has the version that the watch has come to. The watch is
// over if it does not.
func (w *watching) askOwn(ctx context.Context) (over bool, err error) {
	a, err := w.Follower.ask(ctx, server.Inquiry{ResourceVersion: w.at.ResourceVersion, VersionOnly: true, ResourceOnly: true})
	switch {
	case ctx.Err() != nil:
		return false, nil
	case listwatch.Classify(err) == listwatch.TooLarge:
		w.Report.CountRestore()
		return w.end(listwatch.Outcome{Kind: listwatch.TooLarge}, err)
	case err != nil:
		w.at.Silent = errors.Is(err, errPaced)
		w.failUnlessPaced(err)
		return false, nil
	case a.Older:
		w.Report.Fail(fmt.Errorf("bookmarks and lists are older than %s, from which the watch began", w.at.ResourceVersion))
		w.Relist()
	}
	w.own.settled = true
	return false, nil
}

// noteBookmarks notes how a watch has ended. If it has lasted for its full time without a bookmark,
// where others had them, the next one asks the resource.
func (w *watching) noteBookmarks() {
	full := w.outcome.Kind == listwatch.WatchEnded && !w.outcome.Refused && !w.isEarly()
	switch {
	case w.own.bookmarks:
		w.hasBookmarks = true
	case full && w.hasBookmarks && w.at.ResourceVersion == w.state.(listwatch.Watching).ResourceVersion:
		w.at.Silent = true
	}
}
