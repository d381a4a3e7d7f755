package lists_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

var (
	one   = harness.ItemJSON("a", "u1", 100, "")
	two   = harness.ItemJSON("a", "u2", 200, "")
	three = harness.ItemJSON("a", "u3", 150, "")
	other = harness.ItemJSON("b", "u9", 50, "")
)

// A list that has several objects of one key keeps one of them, whatever their order, and is reported
// once.
func TestKeyTwiceInAListKeepsOneObject(t *testing.T) {
	for name, as := range map[string]runtime.Object{"typed": &corev1.Pod{}, "unstructured": nil, "raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{}} {
		var told harness.Told
		harness.BubbleRun(t, name, informertest.Options{Wrap: told.Wrap}, func(t *testing.T, w *harness.World) {
			var r harness.Recorder
			var f harness.Failures
			told.List(one, other, two)
			i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, ExampleObject: as, ErrorHandler: f.Handle})
			time.Sleep(time.Second)
			require.ElementsMatch(t, []string{"add d/a initial", "add d/b initial"}, r.Events())
			require.Equal(t, map[string]string{"d/a": "100", "d/b": "50"}, r.State())
			for _, items := range [][]string{{two, one, other}, {other, three, two, one}, {one, two, other}, {three, one, other, two}} {
				r.Forget()
				told.List(items...)
				told.Relist()
				require.Subset(t, []string{"sync d/a", "sync d/b"}, r.Events())
				require.Equal(t, map[string]string{"d/a": "100", "d/b": "50"}, r.State())
				require.Equal(t, informer.ReasonUndecodableObjects, i.Status().Condition.Reason)
				require.Contains(t, i.Status().Condition.Message, `several objects of this name: the one with the UID "u1" is kept`)
			}
			require.EqualValues(t, 1+1+2+1+2, i.Status().Skipped)
			require.Len(t, harness.Only[*informer.ItemError](&f), 1)

			// Changes of the others are not those of the kept one.
			r.Forget()
			told.Send("MODIFIED", harness.ItemJSON("a", "u2", 5001, ""))
			told.Send("DELETED", harness.ItemJSON("a", "u3", 5002, ""))
			require.Empty(t, r.Events())
			told.Send("MODIFIED", harness.ItemJSON("a", "u1", 5003, ""))
			require.Equal(t, []string{"update d/a"}, r.Events())

			// Another one takes the place of the kept one when that is gone.
			told.List(two, other)
			told.Relist()
			require.Equal(t, map[string]string{"d/a": "200", "d/b": "50"}, r.State())
			told.List(two, other)
			told.Relist()
			require.NoError(t, i.Status().SkippedError)
			require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
			told.List(harness.ItemJSON("a", "u4", 9000, ""), other)
			told.Relist()
			require.Equal(t, map[string]string{"d/a": "9000", "d/b": "50"}, r.State(), "another UID is another object")
		})
	}
}

// When the kept one of several objects is deleted, the next list brings another one.
func TestKeyTwiceInAListAndTheKeptOneIsDeleted(t *testing.T) {
	var told harness.Told
	harness.Bubble(t, informertest.Options{Wrap: told.Wrap}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		told.List(one, two)
		harness.Running(w, informer.InformerConfig{Handler: &r})
		time.Sleep(time.Second)
		told.List(two)
		told.Send("DELETED", harness.ItemJSON("a", "u1", 1500, ""))
		require.Empty(t, r.State())
		time.Sleep(40 * time.Minute) // the watch ends
		require.Equal(t, map[string]string{"d/a": "200"}, r.State())
		require.Equal(t, []string{"add d/a initial", "delete d/a", "add d/a"}, r.Events())
	})
}

// Handlers of a shared informer, and an object cache, keep one as well.
func TestKeyTwiceInAListOfOtherInformers(t *testing.T) {
	var told harness.Told
	harness.BubbleRun(t, "shared", informertest.Options{Wrap: told.Wrap}, func(t *testing.T, w *harness.World) {
		told.List(one, two)
		s := harness.Share(w, informer.InformerConfig{})
		var first, second harness.Recorder
		harness.AddHandler(t, s, &first)
		harness.AddHandler(t, s, &second)
		defer harness.Start(s.RunWithContext)()
		time.Sleep(time.Second)
		for _, items := range [][]string{{two, one}, {one, two}} {
			told.List(items...)
			told.Relist()
		}
		for _, r := range []*harness.Recorder{&first, &second} {
			require.Equal(t, map[string]string{"d/a": "100"}, r.State())
			require.NotContains(t, r.Events(), "delete d/a unknown")
		}
	})
	for _, decoded := range []bool{false, true} {
		var told harness.Told
		harness.BubbleRun(t, fmt.Sprint("objectcache/", decoded), informertest.Options{Wrap: told.Wrap}, func(t *testing.T, w *harness.World) {
			told.List(one, two)
			var events []string
			var reported int
			i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), &corev1.Pod{}, objectcache.Options{Decoded: decoded})
			require.NoError(t, i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
				var item *informer.ItemError
				if errors.As(err, &item) {
					reported++
				}
			}))
			_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj interface{}) { events = append(events, "add "+string(obj.(*corev1.Pod).UID)) },
				UpdateFunc: func(_, obj interface{}) { events = append(events, "update "+string(obj.(*corev1.Pod).UID)) },
				DeleteFunc: func(obj interface{}) { events = append(events, "delete") },
			})
			require.NoError(t, err)
			defer harness.Start(i.RunWithContext)()
			time.Sleep(2 * time.Second)
			for _, items := range [][]string{{two, one}, {three, one, two}} {
				told.List(items...)
				told.Relist()
			}
			require.Equal(t, []string{"add u1"}, events)
			require.Equal(t, 1, reported)
			told.List(two)
			told.Relist()
			require.Equal(t, []string{"add u1", "delete", "add u2"}, events)
		})
	}
}

// An audit finds no difference where a list has several objects of one key.
func TestKeyTwiceInAListIsNoDifference(t *testing.T) {
	var told harness.Told
	harness.Bubble(t, informertest.Options{Wrap: told.Wrap}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		told.List(one, two)
		i := harness.Running(w, informer.InformerConfig{Handler: &r, AuditEvery: 10 * time.Minute, AuditOptions: informer.AuditOptions{Repair: true}})
		time.Sleep(time.Second)
		for _, items := range [][]string{{one, two}, {two, one, three}} {
			told.List(items...)
			told.Relist()
			time.Sleep(20 * time.Minute)
			require.NotNil(t, i.Status().LastAudit)
			require.False(t, i.Status().LastAudit.Differs())
			require.NoError(t, i.Status().LastAudit.Err)
		}
		require.Equal(t, map[string]string{"d/a": "100"}, r.State())
		require.NotContains(t, r.Events(), "delete d/a unknown")
	})
}
