package podserver

import (
	"context"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/bench/podserver/extra"
)

// bookmarkPeriod is a kube-apiserver's.
const bookmarkPeriod = time.Minute

// burstPause is before the burst, so that who handles the initial events has done
// so: otherwise changes are told with them.
const burstPause = 500 * time.Millisecond

// watchRequest is what a watch asks for.
type watchRequest struct {
	initialEvents bool
	bookmarks     bool
	timeout       time.Duration
	version       int
	end           string
}

func watchOf(query url.Values) watchRequest {
	// What can not be read is as what is not given.
	flag := func(name string) bool { b, _ := strconv.ParseBool(query.Get(name)); return b }
	number := func(name string) int { n, _ := strconv.Atoi(query.Get(name)); return n }
	q := watchRequest{
		initialEvents: flag("sendInitialEvents"),
		bookmarks:     flag("allowWatchBookmarks"),
		timeout:       time.Duration(number("timeoutSeconds")) * time.Second,
		version:       max(number("resourceVersion"), listVersion),
		end:           query.Get(extra.EndParameter),
	}
	// Without a version, a watch begins with what there is.
	if version := query.Get("resourceVersion"); query.Get("sendInitialEvents") == "" && (version == "" || version == "0") {
		q.initialEvents = true
	}
	if q.timeout <= 0 {
		q.timeout = 30 * time.Minute
	}
	return q
}

func (q watchRequest) serve(ctx context.Context, w *counted, f *form, set Options) error {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	w.flush() // the client waits for the headers
	if q.initialEvents {
		if err := sendInitial(ctx, w, f, set.Pods); err != nil {
			return err
		}
		if q.bookmarks {
			if err := sendBookmark(w, f, listVersion, map[string]string{metav1.InitialEventsAnnotationKey: "true"}); err != nil {
				return err
			}
		}
	}
	if q.end == extra.EndInitial {
		return nil
	}
	if q.version-listVersion < set.Events {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(burstPause):
		}
	}
	if err := sendBurst(ctx, w, f, set, q.version-listVersion); err != nil || q.end == extra.EndBurst {
		return err
	}
	ticker := time.NewTicker(bookmarkPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if !q.bookmarks {
				continue
			}
			if err := sendBookmark(w, f, listVersion+set.Events, nil); err != nil {
				return err
			}
		}
	}
}

func sendInitial(ctx context.Context, w *counted, f *form, pods int) error {
	t := f.addedTiles.Get().(*tiles)
	defer f.addedTiles.Put(t)
	return sendEvents(ctx, w, t, 0, pods, func(id *identity, i int) { id.set(i, pods) })
}

// sendBurst sends the changes from the one after the first ones, which the
// client knows.
func sendBurst(ctx context.Context, w *counted, f *form, set Options, known int) error {
	t := f.modifiedTiles.Get().(*tiles)
	defer f.modifiedTiles.Put(t)
	return sendEvents(ctx, w, t, known, set.Events, func(id *identity, i int) {
		id.set(i%set.Pods, set.Pods)
		id.setVersion(listVersion + 1 + i)
	})
}

func sendEvents(ctx context.Context, w *counted, t *tiles, from, to int, set func(id *identity, i int)) error {
	for sent := from; sent < to; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		some := min(to-sent, t.capacity())
		if _, err := w.Write(t.render(some, func(id *identity, k int) { set(id, sent+k) })); err != nil {
			return err
		}
		sent += some
	}
	w.flush()
	return nil
}

func sendBookmark(w *counted, f *form, version int, annotations map[string]string) error {
	meta := metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version), Annotations: annotations}
	var obj runtime.Object = &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta}
	if f.metadata {
		obj = metadataOf(&corev1.Pod{ObjectMeta: meta})
	}
	if _, err := w.Write(f.encodeEvent(watch.Bookmark, obj)); err != nil {
		return err
	}
	w.flush()
	return nil
}
