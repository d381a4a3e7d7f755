package follower

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// comparePatience is how long a run that resumes may compare objects with the server.
const comparePatience = 20 * time.Second

// compare compares the newest objects known with those of the server, once for a run that resumes.
// The server has the version to go on from. But it may have been restored from a backup, and have
// come to that version again, with other changes: a watch shows none of them, and a list is needed.
//
// The server must show a known object as it is known, or as it has become after the version to go
// on from. The first that it shows as it is known ends the comparison. If one has been deleted, the
// watch has to tell that: see missing.
func (w *watching) compare(ctx context.Context) (standing, error) {
	r := w.resuming
	if r == nil || r.latest == nil {
		return hasVersion, nil
	}
	limited, cancel := context.WithTimeout(ctx, comparePatience)
	defer cancel()
	objects := r.latest()
	newest := w.at.ResourceVersion
	if len(objects) > 0 {
		newest = rv.AtLeast(newest, objects[0].Version.ResourceVersion)
	}
	for _, o := range objects {
		if !w.questions.MayAsk(time.Now()) {
			w.at.Unsure = true
			return unproven, nil
		}
		w.questions = w.questions.Asked(time.Now(), 1)
		found, err := w.Server.Find(limited, o.Key, newest)
		if err != nil {
			return w.notCompared(ctx, newest, err)
		}
		if isKnown(found, o) || found.At == "" {
			break
		}
		if !found.Exists {
			w.expect(o.Key, found.At)
		} else if rv.NotNewer(found.Version.ResourceVersion, rv.AtLeast(w.at.ResourceVersion, o.Version.ResourceVersion)) {
			w.at.ResourceVersion = newest
			return hasOther, fmt.Errorf("the server was restored from a backup: it has %s in version %s, not %s",
				o.Key, found.Version.ResourceVersion, o.Version.ResourceVersion)
		}
	}
	r.latest = nil
	return hasVersion, nil
}

// isKnown reports whether the server has an object as it is known.
func isKnown(found server.Found, o object.Known) bool {
	return found.Exists && found.Version.SameState(o.Version)
}

// notCompared returns what a failure to compare means. If the server does not have the newest
// version known, the list that follows must not be older, because only a replica may lag. Otherwise
// the next watch compares again.
func (w *watching) notCompared(ctx context.Context, newest string, err error) (standing, error) {
	if listwatch.Classify(err) == listwatch.TooLarge {
		w.at.ResourceVersion = newest
		return hasNot, fmt.Errorf("whether the server was restored: %w", err)
	}
	if ctx.Err() == nil {
		w.Report.Fail(fmt.Errorf("whether the server was restored: %w", err))
	}
	w.at.Unsure = true
	return hasVersion, nil
}

// missing are known objects that the server did not have when a run resumed. Their deletion comes
// after the version to go on from, so that the watch tells it. If it does not, the server never had
// them: it was restored from a backup. Until then they are a gap, so that no checkpoint says that
// everything was shown.
type missing struct {
	keys map[string]struct{}
	// at is a version by which the watch has told their deletion.
	at string
}

// expect notes that the watch has to tell the deletion of an object by a version.
func (w *watching) expect(key, at string) {
	m := &w.resuming.missing
	if m.keys == nil {
		m.keys = map[string]struct{}{}
		w.Report.Gaps.Add()
	}
	m.keys[key] = struct{}{}
	m.at = rv.AtLeast(at, m.at)
}

// hear notes that the watch tells of an object.
func (w *watching) hear(c *source.Change) {
	if w.resuming == nil || w.resuming.keys == nil || c.Event == watch.Bookmark {
		return
	}
	delete(w.resuming.keys, c.Item.Key)
	if len(w.resuming.keys) == 0 {
		w.resuming.keys = nil
		w.Report.Gaps.Remove()
	}
}

// miss has the set listed if the watch has not told a deletion that it had to tell by now. After one
// deletion, others of its version may follow.
func (w *watching) miss(c *source.Change) {
	r := w.resuming
	if r == nil || r.keys == nil {
		return
	}
	told := w.at.Reached().Claim()
	if c.Event == watch.Deleted {
		told = w.at.Reached().Resume()
	}
	if !rv.NotNewer(r.at, told) {
		return
	}
	for key := range r.keys {
		w.Report.Fail(fmt.Errorf("the server was restored from a backup: it does not have %s, and no watch has told its deletion", key))
		break
	}
	r.keys = nil // the gap stays until the list has ended
	w.Report.CountRestore()
	w.Relist()
}
