package servers_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// listInParts is the body of a list of pods, compressed in so many members.
func listInParts(t *testing.T, parts int, keys ...string) []byte {
	var items []string
	for i, key := range keys {
		name, err := cache.ParseObjectName(key)
		require.NoError(t, err)
		items = append(items, fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":%q,"name":%q,"uid":"u%d","resourceVersion":"%d"},"data":"%x"}`,
			name.Namespace, name.Name, i, i+1, rand.Uint64()))
	}
	body := fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, len(keys), strings.Join(items, ","))
	var zipped bytes.Buffer
	for i := range parts {
		w := gzip.NewWriter(&zipped)
		_, err := io.WriteString(w, body[len(body)*i/parts:len(body)*(i+1)/parts])
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return zipped.Bytes()
}

func sendZipped(body []byte, encoding string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", encoding)
		_, _ = w.Write(body)
	}
}

// A damaged list is reported with what is wrong, proves nothing, and is asked for again.
func TestDamagedCompression(t *testing.T) {
	whole := listInParts(t, 1, harness.Keys(2000)...)
	changed := func(at int, by byte) []byte {
		damaged := bytes.Clone(whole)
		damaged[at] ^= by
		return damaged
	}
	for name, test := range map[string]struct {
		body     []byte
		encoding string
		want     string
	}{
		"no body":           {nil, "gzip", "empty body"},
		"header cut":        {whole[:5], "gzip", "unexpected EOF"},
		"data cut":          {whole[:len(whole)/2], "gzip", "unexpected EOF"},
		"checksum cut":      {whole[:len(whole)-4], "gzip", "unexpected EOF"},
		"checksum wrong":    {changed(len(whole)-8, 1), "gzip", "Content-Encoding gzip): gzip: invalid checksum"},
		"length wrong":      {changed(len(whole)-1, 1), "gzip", "Content-Encoding gzip): gzip: invalid checksum"},
		"no gzip":           {[]byte(`{"kind":"PodList"}`), "gzip", "Content-Encoding gzip): gzip: invalid header"},
		"data wrong":        {changed(10, 2), "gzip", "Content-Encoding gzip): flate: corrupt input"},
		"more behind it":    {append(bytes.Clone(whole), "0123456789"...), "gzip", "Content-Encoding gzip): gzip: invalid header"},
		"another encoding":  {whole, "br", `the answer has the Content-Encoding "br", which was not asked for`},
		"a list behind one": {append(bytes.Clone(whole), whole...), "gzip", "more data behind the list"},
	} {
		harness.BubbleRun(t, name, informertest.Options{Wrap: harness.AnswerOnce(isList, sendZipped(test.body, test.encoding))}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/0000", "a/1")
			var f harness.Failures
			var r harness.Recorder
			i := harness.Running(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle})
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			w.RequireState(&r)
			errs := f.Errors()
			require.NotEmpty(t, errs)
			harness.ErrorAs[*informer.BodyError](t, errs[0])
			require.ErrorContains(t, errs[0], test.want)
		})
	}
}

func TestCompressedInSeveralMembers(t *testing.T) {
	for _, parts := range []int{1, 2, 7} {
		body := listInParts(t, parts, harness.Keys(100)...)
		harness.Bubble(t, informertest.Options{Wrap: harness.AnswerOnce(isList, sendZipped(body, "GZIP"))}, func(t *testing.T, w *harness.World) {
			var r harness.Recorder
			i := harness.Settled(w, informer.InformerConfig{Handler: &r})
			require.Len(t, r.State(), 100)
			require.Equal(t, int64(len(body)), i.Status().Counts.ReceivedBytes, "as the server sent them")
		})
	}
}

// A refusal may be compressed, too.
func TestCompressedRefusal(t *testing.T) {
	var refusal bytes.Buffer
	zip := gzip.NewWriter(&refusal)
	_, err := io.WriteString(zip, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not today","reason":"Forbidden","code":403}`)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	harness.Bubble(t, informertest.Options{Wrap: harness.AnswerOnce(isList, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(refusal.Bytes())
	})}, func(t *testing.T, w *harness.World) {
		var f harness.Failures
		harness.Settled(w, informer.InformerConfig{Handler: &harness.Recorder{}, ErrorHandler: f.Handle})
		err := f.One(t)
		require.ErrorContains(t, err, "not today")
		require.EqualValues(t, http.StatusForbidden, codeOf(err))
	})
}

// An informer that ends in the midst of a compressed list that has stalled does not wait for it.
func TestEndAmidCompressedList(t *testing.T) {
	body := listInParts(t, 1, harness.Keys(5000)...)
	for _, over := range []informertest.Options{{}, {TLS: true}} {
		var began atomic.Bool
		over.Wrap = harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
			if !isList(r) {
				return true
			}
			sendZipped(body[:len(body)/2], "gzip")(w, r)
			_ = http.NewResponseController(w).Flush()
			began.Store(true)
			<-r.Context().Done()
			return false
		})
		server := informertest.NewServer(over)
		w := &harness.World{T: t, Server: server}
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: &r})
		stop := harness.Start(i.RunWithContext)
		require.Eventually(t, func() bool { return began.Load() && len(r.State()) > 100 }, time.Minute, time.Millisecond)
		stop()
		require.False(t, i.HasSynced())
		server.Close()
	}
}

// Pages come compressed, unless the client does not accept that. ListModeAuto begins with a
// watch-list.
func TestReceivedBytesOfListModes(t *testing.T) {
	for name, test := range map[string]struct {
		mode     informer.ListMode
		disabled bool
		want     informer.ListMode
	}{
		"auto":                      {want: informer.ListModeWatchList},
		"pages":                     {mode: informer.ListModePaged, want: informer.ListModePaged},
		"pages, and no compression": {mode: informer.ListModePaged, disabled: true, want: informer.ListModePaged},
		"watch-list":                {mode: informer.ListModeWatchList, want: informer.ListModeWatchList},
		"one response":              {mode: informer.ListModeFull, want: informer.ListModeFull},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			for _, key := range harness.Keys(60) {
				_, err := w.Create(harness.Pods, harness.Object(harness.Pods, key, strings.Repeat("x", 5000))) // more than 128 KiB
				require.NoError(t, err)
			}
			config := w.Config()
			config.DisableCompression = test.disabled
			var r harness.Recorder
			i := informer.NewResourceVersionInformer("received", informer.InformerConfig{
				ListerWatcher: harness.ListerOf(t, config), Handler: &r, WatchListPageSize: 40, ListMode: test.mode,
			})
			defer harness.Settle(i.RunWithContext)()
			w.RequireState(&r)
			status := i.Status()
			require.Equal(t, test.want, status.ListMode)
			require.NoError(t, status.Fallback)
			received := status.Counts.ReceivedBytes
			switch {
			case test.want == informer.ListModePaged && !test.disabled:
				require.Equal(t, []string{"list limit=40", "list limit=40 continue"}, w.Verbs()[:2])
				require.Less(t, received, int64(150_000), "one page of two is compressed")
			case test.want == informer.ListModeFull:
				require.Less(t, received, int64(150_000))
			default:
				require.Greater(t, received, int64(300_000))
			}
		})
	}
}

// A foreign ListerWatcher has decoded its objects itself.
func TestReceivedBytesOfOthers(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1")
		lister := w.Lister().(cache.ListerWatcherWithContext)
		i := harness.Settled(w, informer.InformerConfig{Handler: &harness.Recorder{}, ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: lister.ListWithContext, WatchFuncWithContext: lister.WatchWithContext,
		}})
		require.True(t, i.HasSynced())
		require.Zero(t, i.Status().Counts.ReceivedBytes)
		require.Equal(t, informer.ListModePaged, i.Status().ListMode)
	})
}
