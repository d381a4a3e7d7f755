package e2e

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/e2e/proxy"
)

// ListModeAuto reads each form of objects with a watch-list, which a kube-apiserver compresses from
// 1.37 on: it comes in about as many bytes as pages of the same. Before 1.37, pages take a fraction
// of its bytes, because only they come compressed.
func TestSetsComeCompressed(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := usual.Get(t)
	zipped := features(ctx, t, c)[compressing.name]
	const (
		many, perPage = 2000, 1000 // so that each page has more than the 128 KiB from which on it is compressed, metadata in protobuf too
		fraction      = 10         // pages take less than a tenth of the bytes of a watch-list; measured: 1/19 to 1/27
		// A compressed watch-list takes less than so many times the bytes of pages. Measured: 1.00 to
		// 1.31, the most on a busy machine, where the server ends a gzip member whenever it waits
		// for its own cache.
		alike = 3
	)
	objects := newPods(ctx, t, c, many)
	for name, example := range map[string]apiruntime.Object{
		"raw": &informer.RawObject{}, "metadata": &metav1.PartialObjectMetadata{}, "unstructured": &unstructured.Unstructured{}, "typed": &corev1.Pod{},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(mode informer.ListMode) (informer.Status, []exchange) {
				seen := &tap{}
				config := seen.install(rest.CopyConfig(c.Config()))
				s := start(ctx, t, newMirror(nil), informer.InformerConfig{
					ListerWatcher: source(t, config, objects), ExampleObject: example, ListMode: mode, WatchListPageSize: perPage,
				})
				s.waitSynced(ctx, t)
				status := s.informer.Status()
				s.requireEqual(ctx, t, objects)
				require.Empty(t, s.reported())
				require.NoError(t, status.Fallback)

				var lists []exchange
				for _, e := range seen.ofObjects() {
					require.True(t, e.err != nil || e.status == http.StatusOK, "%v", e) // a watch may end with the session
					if e.isSet() {                                                      // a busy server may end a watch, and is asked about its version then
						lists = append(lists, e)
					}
				}
				return status, lists
			}

			streamed, lists := read(informer.ListModeAuto)
			require.Equal(t, informer.ListModeWatchList, streamed.ListMode)
			require.NotEmpty(t, lists)
			for _, list := range lists {
				require.True(t, list.isWatch())
				require.Equal(t, "gzip", list.accepted)
				require.True(t, list.err != nil || zipped == (list.encoding == "gzip"), "%v", list)
			}

			paged, lists := read(informer.ListModePaged)
			require.Equal(t, informer.ListModePaged, paged.ListMode)
			// A page that the informer leaves unread for seconds, as on a busy machine, is asked
			// for again.
			require.GreaterOrEqual(t, len(lists), many/perPage)
			require.True(t, lists[0].isFirstPage())
			require.True(t, lists[len(lists)-1].isPage())
			for _, page := range lists {
				require.False(t, page.isWatch())
				require.Equal(t, "1000", page.query.Get("limit"))
				require.Equal(t, "gzip", page.accepted)
				require.Equal(t, "gzip", page.encoding)
			}
			share := float64(streamed.Counts.ReceivedBytes) / float64(paged.Counts.ReceivedBytes)
			t.Logf("a watch-list takes %.2f times the %d bytes of pages", share, paged.Counts.ReceivedBytes)
			if zipped {
				require.Less(t, share, float64(alike))
			} else {
				require.Greater(t, share, float64(fraction))
			}
		})
	}
}

// ReceivedBytes is what came over the connection, but for what TLS and HTTP/2 add, in each way to
// read a set.
func TestReceivedBytesAreThoseOfTheConnection(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := usual.Get(t)
	const (
		many, padding = 800, 8 << 10
		most          = 1.01 // measured: 1.0083
		tries         = 3    // a busy informer may ask for a page again, which has been on its way
	)
	objects := newPods(ctx, t, c, 0)
	objects.Padding = padding
	require.NoError(t, objects.Fill(ctx, many))
	for _, mode := range []informer.ListMode{informer.ListModeWatchList, informer.ListModePaged, informer.ListModeFull} {
		t.Run(mode.String(), func(t *testing.T) {
			read := func() float64 {
				config := c.Config()
				p, err := proxy.Listen(strings.TrimPrefix(config.Host, "https://"))
				require.NoError(t, err)
				defer func() { require.NoError(t, p.Close()) }()
				config.Host = "https://" + p.Addr()
				s := start(ctx, t, newMirror(nil), informer.InformerConfig{
					ListerWatcher: source(t, config, objects), ExampleObject: &informer.RawObject{}, ListMode: mode,
				})
				s.waitSynced(ctx, t)
				s.stop(t)
				received := s.informer.Status().Counts.ReceivedBytes
				share := float64(p.Handed(proxy.Server)) / float64(received)
				t.Logf("the connection carried %.4f times the %d bytes", share, received)
				require.Greater(t, received, int64(many*padding/2))
				require.GreaterOrEqual(t, share, 1.0)
				return share
			}
			share := read()
			for try := 1; try < tries && share >= most; try++ {
				share = read()
			}
			require.Less(t, share, most)
		})
	}
}

// An event is delivered while the next one does not come, be it a bookmark, which comes each minute.
func TestEventIsDeliveredAtOnce(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := usual.Get(t)
	objects := newPods(ctx, t, c, 10)
	s := start(ctx, t, newMirror(nil), informer.InformerConfig{
		ListerWatcher: source(t, c.Config(), objects), ExampleObject: &informer.RawObject{}, ListMode: informer.ListModeWatchList,
	})
	s.waitSynced(ctx, t)
	const tries = 3 // a bookmark may come behind the event by chance
	for try := range tries {
		bookmarks := s.informer.Status().Counts.Events.Bookmarks
		require.NoError(t, objects.Create(ctx, cluster.Name(100+try)))
		key := objects.Namespace + "/" + cluster.Name(100+try)
		require.NoError(t, s.mirror.await(ctx, "the event was delivered", func() bool {
			_, told := s.mirror.objects[key]
			return told
		}))
		if s.informer.Status().Counts.Events.Bookmarks == bookmarks {
			return
		}
	}
	require.Fail(t, "each event waited for a bookmark")
}

// Informers that wait take as little from a kube-apiserver that compresses watch-lists as from one
// that does not. Not in parallel: no other test takes memory meanwhile.
func TestIdleInformersKeepNoDecompressor(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	const (
		first, many = 30, 200  // the first ones take what is there once
		most        = 20 << 10 // a decompressor has more than 40 KiB
	)
	objects := newPods(ctx, t, c, 1)
	lw := source(t, c.Config(), objects)
	var updates atomic.Int64
	handler := informer.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { updates.Add(1) }}
	var runs sync.WaitGroup
	defer runs.Wait()
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	running := 0
	begin := func(n int) {
		for range n {
			i := informer.NewResourceVersionInformer(t.Name(), informer.InformerConfig{
				ListerWatcher: lw, ExampleObject: &informer.RawObject{}, ListMode: informer.ListModeWatchList, Handler: handler,
			})
			runs.Go(func() { i.RunWithContext(stopped) })
			<-i.HasSyncedChecker().Done()
		}
		running += n
	}
	change := func() {
		seen := updates.Load()
		require.NoError(t, objects.Update(ctx, cluster.Name(0), fmt.Sprint(seen)))
		require.Eventually(t, func() bool { return updates.Load() == seen+int64(running) }, time.Minute, 10*time.Millisecond)
	}
	held := func() (heap, stack float64) {
		for range 10 { // pools keep what they have for two, and each halves stacks at most
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc), float64(m.StackInuse)
	}
	begin(first)
	change()
	heapBefore, stackBefore := held()
	// The handler may have been told of an event while its reader is still on the way back to wait.
	requireLittle := func(when string) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			heap, stack := held()
			heap, stack = (heap-heapBefore)/many, (stack-stackBefore)/many
			t.Logf("%s, each of %d informers takes %.1f KiB of heap and %.1f KiB of stack", when, many, heap/(1<<10), stack/(1<<10))
			require.Less(c, heap, float64(most))
		}, time.Minute, 100*time.Millisecond)
	}
	begin(many)
	requireLittle("after the initial events")
	change()
	requireLittle("after an event")
}
