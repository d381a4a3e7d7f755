package watches_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// split has a server make several changes in one version, and cuts the watch after the first of them.
func split(a *harness.Aggregated, version int, first string) {
	change := map[string]func(){
		"created": func() { a.Put(fmt.Sprintf("a/new-%d", version), version) },
		"changed": func() { a.Put("a/0001", version) },
		"deleted": func() { a.Delete(fmt.Sprintf("a/old-%d", version), version) },
	}
	change[first]()
	synctest.Wait()
	a.Cut(func() {
		a.Put("a/0002", version)
		for kind, rest := range change {
			if kind != first {
				rest()
			}
		}
	})
}

// aggregatedPods are those that split changes in some versions.
func aggregatedPods(versions ...int) *harness.Aggregated {
	a := &harness.Aggregated{}
	for n, key := range []string{"a/0001", "a/0002", "a/0003"} {
		a.Put(key, n+1)
	}
	for n, version := range versions {
		a.Put(fmt.Sprintf("a/old-%d", version), n+4)
	}
	return a
}

// A server that is not over etcd makes several changes in one version, and its watch is cut between two
// of them. The next watch tells the others, from the first such version on, and nothing is delivered
// twice.
func TestWatchThatIsCutBetweenChangesOfOneVersion(t *testing.T) {
	for _, first := range []string{"created", "changed", "deleted"} {
		a := aggregatedPods(10, 11, 12, 13)
		harness.BubbleRun(t, first, informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
			w.SetResourceVersion(1000)
			r, late := &harness.Recorder{}, &harness.Recorder{}
			s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
			harness.AddHandler(t, s, r)
			defer harness.Settle(s.RunWithContext)()
			for version := 10; version < 14; version++ {
				before := len(r.Events())
				split(a, version, first)
				time.Sleep(time.Minute)
				require.Equal(t, a.Versions(), r.State())
				require.Len(t, r.Events(), before+4)
				if version == 11 { // it learns of this from the other one
					harness.AddHandler(t, s, late)
					synctest.Wait()
				}
			}
			require.Equal(t, a.Versions(), late.State())
			require.Len(t, late.Events(), 7+4+4)
			lists, _ := a.Asked()
			require.Equal(t, 2, lists)
			_, before := a.Asked()
			time.Sleep(time.Hour)
			_, after := a.Asked()
			require.Less(t, after-before, 20)
		})
		a = aggregatedPods(10, 11)
		harness.BubbleRun(t, first+", objectcache", informertest.Options{Wrap: a.Wrap}, func(t *testing.T, w *harness.World) {
			w.SetResourceVersion(1000)
			r := &harness.Recorder{}
			i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), harness.ExampleObject("v1", "Pod"), objectcache.Options{})
			_, err := i.AddEventHandler(r)
			require.NoError(t, err)
			defer harness.Settle(i.RunWithContext)()
			for version := 10; version < 12; version++ {
				before := len(r.Events())
				split(a, version, first)
				time.Sleep(time.Minute)
				require.Equal(t, a.Versions(), r.State())
				require.Len(t, r.Events(), before+4)
			}
			lists, _ := a.Asked()
			require.Equal(t, 1, lists)
		})
	}
}

// What was learnt of such versions is not forgotten by a list.
func TestDeletionsOfOneVersionAfterAList(t *testing.T) {
	broken := 0
	for bytes := 0; bytes < 3000; bytes += 100 {
		harness.BubbleRun(t, fmt.Sprint(bytes), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(12)...)
			r := &harness.Recorder{}
			harness.Settled(w, informer.InformerConfig{Handler: r, ListMode: informer.ListModePaged})
			require.NoError(t, w.Expire(harness.Pods, "a", "0000", "0001"))
			synctest.Wait()
			w.Relist()
			w.RequireState(r)
			w.ResetRequests()
			heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch"}}, Effect: informertest.Cut(bytes), Times: 1})
			require.NoError(t, w.Expire(harness.Pods, "a", "0002", "0003", "0004", "0005"))
			synctest.Wait()
			heal()
			if len(w.Verbs()) > 0 {
				broken++
			}
			time.Sleep(30 * time.Second)
			w.RequireState(r)
			require.Empty(t, w.Lists())
		})
	}
	require.Greater(t, broken, 3, "watches that broke")
}

// A server that does not have the version before any more is asked for a watch from the version reached,
// without a list.
func TestVersionBeforeHasExpired(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		r, failed := &harness.Recorder{}, &harness.Failures{}
		harness.Settled(w, informer.InformerConfig{Handler: r, ErrorHandler: failed.Handle})
		w.CreatePods("a/new")
		synctest.Wait()
		w.Compact()
		w.ResetRequests()
		w.CloseClientConnections()
		time.Sleep(10 * time.Second)
		w.UpdatePod("a/new", "changed")
		synctest.Wait()
		w.RequireState(r)
		require.Empty(t, w.Lists())
		for _, err := range failed.Errors() {
			require.NotContains(t, err.Error(), "too old")
		}
	})
}
