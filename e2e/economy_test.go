package e2e

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
)

// What each Economy asks a kube-apiserver for, in each form of objects: a watch-list, which comes as it is, or pages, which come compressed and with a
// fraction of its bytes.
func TestEconomy(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := usual.Get(t)
	const (
		many, perPage = 2000, 1000 // so that each page has more than the 128 KiB from which on it is compressed, metadata in protobuf too
		fraction      = 10         // pages take less than a tenth of the bytes of a watch-list; measured: 1/19 to 1/27
	)
	objects := newPods(ctx, t, c, many)
	economies := map[informer.Economy]string{informer.EconomyServer: "server", informer.EconomyCPU: "cpu", informer.EconomyBytes: "bytes"}
	for _, form := range []struct {
		name    string
		example runtime.Object
		paged   []informer.Economy
	}{
		{"raw", &informer.RawObject{}, []informer.Economy{informer.EconomyCPU, informer.EconomyBytes}},
		{"metadata", &metav1.PartialObjectMetadata{}, []informer.Economy{informer.EconomyCPU, informer.EconomyBytes}},
		{"unstructured", &unstructured.Unstructured{}, []informer.Economy{informer.EconomyCPU, informer.EconomyBytes}},
		{"typed", &corev1.Pod{}, []informer.Economy{informer.EconomyBytes}}, // a watch-list takes less CPU
	} {
		received := map[informer.Economy]int64{}
		for _, economy := range []informer.Economy{informer.EconomyServer, informer.EconomyCPU, informer.EconomyBytes} {
			t.Run(form.name+", "+economies[economy], func(t *testing.T) {
				seen := &tap{}
				config := seen.install(rest.CopyConfig(c.Config()))
				s := start(ctx, t, newMirror(nil), informer.InformerConfig{
					ListerWatcher: source(t, config, objects), ExampleObject: form.example, Economy: economy, WatchListPageSize: perPage,
				})
				s.waitSynced(ctx, t)
				status := s.informer.Status()
				received[economy] = status.Counts.ReceivedBytes
				s.requireEqual(ctx, t, objects)
				require.Empty(t, s.reported())
				require.NoError(t, status.Fallback)

				var lists []exchange
				for _, e := range seen.ofObjects() {
					require.True(t, e.err != nil || e.status == http.StatusOK, "%v", e) // a watch may end with the session
					require.True(t, !e.isWatch() || e.encoding == "", "a watch is never compressed")
					if e.isSet() { // a busy server may end a watch, and is asked about its version then
						lists = append(lists, e)
					}
				}
				if !slices.Contains(form.paged, economy) {
					require.Equal(t, informer.ListModeWatchList, status.ListMode)
					require.NotEmpty(t, lists)
					for _, list := range lists {
						require.True(t, list.isWatch())
					}
					return
				}
				require.Equal(t, informer.ListModePaged, status.ListMode)
				// A page that the informer leaves unread for seconds, as on a busy machine, is asked for again.
				require.GreaterOrEqual(t, len(lists), many/perPage)
				require.True(t, lists[0].isFirstPage())
				require.True(t, lists[len(lists)-1].isPage())
				for _, page := range lists {
					require.False(t, page.isWatch())
					require.Equal(t, "1000", page.query.Get("limit"))
					require.Equal(t, "gzip", page.accepted)
					require.Equal(t, "gzip", page.encoding)
				}
				require.Less(t, received[economy]*fraction, received[informer.EconomyServer])
			})
		}
	}
}
