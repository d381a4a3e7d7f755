package e2e

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
)

// ListModeAuto reads each form of objects with a watch-list, which a kube-apiserver sends as it is.
// ListModePaged reads pages, which come compressed and take a fraction of those bytes.
func TestPagesComeCompressed(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := usual.Get(t)
	const (
		many, perPage = 2000, 1000 // so that each page has more than the 128 KiB from which on it is compressed, metadata in protobuf too
		fraction      = 10         // pages take less than a tenth of the bytes of a watch-list; measured: 1/19 to 1/27
	)
	objects := newPods(ctx, t, c, many)
	for name, example := range map[string]runtime.Object{
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
					require.True(t, !e.isWatch() || e.encoding == "", "a watch is never compressed")
					if e.isSet() { // a busy server may end a watch, and is asked about its version then
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
			require.Less(t, paged.Counts.ReceivedBytes*fraction, streamed.Counts.ReceivedBytes)
		})
	}
}
