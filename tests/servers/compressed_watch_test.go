package servers_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// sending counts what a server writes of its watches.
type sending struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (s sending) Write(b []byte) (int, error) {
	s.bytes.Add(int64(len(b)))
	return s.ResponseWriter.Write(b)
}

func (s sending) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Each event of a compressed watch is delivered at once, although the next one comes an hour later,
// and the bytes are counted as they came. DisableCompression has the server compress nothing.
func TestCompressedWatch(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeWatchList} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, plain), func(t *testing.T) {
				var sent atomic.Int64
				var zipped atomic.Bool
				count := func(server http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if strings.Contains(r.URL.Path, "/pods") {
							w = sending{w, &sent}
						}
						server.ServeHTTP(w, r)
						zipped.Store(zipped.Load() || w.Header().Get("Content-Encoding") != "")
					})
				}
				harness.Bubble(t, informertest.Options{GzipWatches: true, GzipAbove: 1, BookmarkInterval: 24 * time.Hour, Wrap: count}, func(t *testing.T, w *harness.World) {
					for n := range 300 {
						w.CreatePods(fmt.Sprintf("a/%d", n))
					}
					config := w.Config()
					config.DisableCompression = plain
					var r harness.Recorder
					i := harness.Follow(w, informer.InformerConfig{Handler: &r, ListMode: mode, ListerWatcher: harness.ListerOf(t, config), StallTimeout: 48 * time.Hour, MinWatchTimeout: 48 * time.Hour})
					stop := harness.Settle(i.RunWithContext)
					w.RequireState(&r)
					for n := range 5 {
						time.Sleep(time.Hour)
						w.CreatePods(fmt.Sprintf("b/%d", n))
						w.UpdatePod("a/1", fmt.Sprint(n))
						w.DeletePods(fmt.Sprintf("a/%d", 100+n))
						synctest.Wait()
						w.RequireState(&r)
						require.Zero(t, i.Status().Queued)
					}
					require.Equal(t, sent.Load(), i.Status().Counts.ReceivedBytes)
					require.Zero(t, i.Status().FailingSince)
					counts := i.Status().Counts
					require.EqualValues(t, 1, counts.Lists.Initial)
					require.Zero(t, counts.Watches.Ended+counts.Watches.Failed)
					stop()
				})
				require.Equal(t, !plain, zipped.Load())
			})
		}
	}
}

// member is a gzip member.
func member(t *testing.T, text string) []byte {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return zipped.Bytes()
}

// podEvent is an event of a pod of a namespace a in a version.
func podEvent(kind, name string, version int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":%q,"uid":"u-%s","resourceVersion":"%d"}}}`+"\n", kind, name, name, version)
}

// The members of a compressed watch come whole, together, byte by byte, empty, and with events that
// go on in the next member. All of it is delivered at once.
func TestMembersOfACompressedWatch(t *testing.T) {
	first, second := podEvent("ADDED", "x", 1001), podEvent("ADDED", "y", 1002)
	flushed := func() []byte { // one member with two flushes, as from a proxy
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		_, _ = io.WriteString(w, first)
		_ = w.Flush()
		_, _ = io.WriteString(w, second)
		_ = w.Flush()
		return zipped.Bytes()
	}
	for name, pieces := range map[string][][]byte{
		"a member each":       {member(t, first), member(t, second)},
		"in one piece":        {append(member(t, first), member(t, second)...)},
		"in one member":       {member(t, first+second)},
		"byte by byte":        slices.Collect(slices.Chunk(append(member(t, first), member(t, second)...), 1)),
		"empty members":       {member(t, ""), member(t, ""), member(t, first), append(member(t, ""), member(t, second)...), member(t, "")},
		"an event in parts":   {member(t, first[:20]), member(t, first[20:]+second[:30]), member(t, second[30:])},
		"the head in parts":   {member(t, first)[:3], member(t, first)[3:9], append(bytes.Clone(member(t, first)[9:]), member(t, second)[:4]...), member(t, second)[4:]},
		"one member, flushed": {flushed()},
	} {
		t.Run(name, func(t *testing.T) {
			send := func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Encoding", "gzip")
				for _, piece := range pieces {
					_, _ = w.Write(piece)
					_ = http.NewResponseController(w).Flush()
					synctest.Wait()
				}
				<-r.Context().Done()
			}
			harness.Bubble(t, informertest.Options{Wrap: harness.AnswerOnce(harness.IsWatch, send)}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/0")
				var r harness.Recorder
				i := harness.Follow(w, informer.InformerConfig{Handler: &r})
				stop := harness.Start(i.RunWithContext)
				time.Sleep(time.Second)
				want := w.Versions()
				want["a/x"], want["a/y"] = "1001", "1002"
				require.Equal(t, want, r.State())
				require.Zero(t, i.Status().FailingSince)
				stop()
			})
		})
	}
}

// A compressed watch that is cut or damaged is asked for again, from the last event that came, and
// nothing is lost.
func TestDamagedCompressedWatch(t *testing.T) {
	event := podEvent("BOOKMARK", "", 1)
	whole := member(t, event)
	changed := func(at int, by byte) []byte {
		damaged := bytes.Clone(whole)
		damaged[at] ^= by
		return damaged
	}
	bomb := func() []byte {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"kind":"Pod","x":"`)
		for range 24 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
		}
		_ = w.Close()
		return zipped.Bytes()
	}
	for name, test := range map[string]struct {
		body []byte
		want string
	}{
		"header cut":     {whole[:5], "unexpected EOF"},
		"data cut":       {whole[:len(whole)/2], "unexpected EOF"},
		"checksum cut":   {whole[:len(whole)-4], "unexpected EOF"},
		"checksum wrong": {changed(len(whole)-8, 1), "Content-Encoding gzip): gzip: invalid checksum"},
		"length wrong":   {changed(len(whole)-1, 1), "Content-Encoding gzip): gzip: invalid checksum"},
		"no gzip":        {[]byte(event), "Content-Encoding gzip): gzip: invalid header"},
		"data wrong":     {changed(10, 6), "Content-Encoding gzip): flate: corrupt input"},
		"more behind it": {append(bytes.Clone(whole), "0123456789"...), "Content-Encoding gzip): gzip: invalid header"},
		"bomb":           {bomb(), "unexpected EOF"},
	} {
		harness.BubbleRun(t, name, informertest.Options{GzipWatches: true, Wrap: harness.AnswerOnce(harness.IsWatch, sendZipped(test.body, "gzip"))}, func(t *testing.T, w *harness.World) {
			w.CreatePods("a/0", "a/1")
			var f harness.Failures
			var r harness.Recorder
			i := harness.Follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle})
			stop := harness.Settle(i.RunWithContext)
			w.UpdatePod("a/0", "new")
			w.DeletePods("a/1")
			time.Sleep(time.Minute)
			w.RequireState(&r)
			errs := f.Errors()
			require.NotEmpty(t, errs)
			require.ErrorContains(t, errs[0], test.want)
			stop()
		})
	}
}

// seenBody is a body that a transport of the user's has wrapped. It counts what is read.
type seenBody struct {
	io.ReadCloser
	seen *atomic.Int64
}

func (b seenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.seen.Add(int64(n))
	return n, err
}

// A transport of the user's that wraps bodies sees all that is read of a compressed watch.
func TestCompressedWatchThroughATransport(t *testing.T) {
	harness.Bubble(t, informertest.Options{GzipWatches: true}, func(t *testing.T, w *harness.World) {
		var seen atomic.Int64
		config := w.Config()
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				response, err := rt.RoundTrip(r)
				if err == nil && harness.IsWatch(r) {
					response.Body = seenBody{response.Body, &seen}
				}
				return response, err
			})
		})
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: &r, ListerWatcher: harness.ListerOf(t, config)})
		stop := harness.Start(i.RunWithContext)
		for n := range 5 {
			before := seen.Load()
			time.Sleep(time.Second)
			w.CreatePods(fmt.Sprintf("a/%d", n))
			synctest.Wait()
			w.RequireState(&r)
			require.Greater(t, seen.Load(), before)
		}
		stop()
	})
}

// sendingPieces answers a watch with pieces that its function writes, each flushed.
func sendingPieces(encoding string, write func(flush func(piece string), r *http.Request)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if encoding != "" {
			w.Header().Set("Content-Encoding", encoding)
		}
		w.WriteHeader(http.StatusOK)
		flush := func(piece string) {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
		}
		flush("")
		write(flush, r)
		<-r.Context().Done()
	}
}

// lateBody returns what has come ten milliseconds later, so that each read has waited.
type lateBody struct{ io.ReadCloser }

func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

// Two events come together after an hour. While the second one waits behind the handler, CurrentAsOf
// is not the moment at which both had come, however they came.
func TestCurrentAsOfOfEventsThatComeTogether(t *testing.T) {
	first, second := podEvent("ADDED", "x", 1001), podEvent("ADDED", "y", 1002)
	first = strings.Replace(first, `"uid"`, `"annotations":{"k":"`+strings.Repeat("v", 300)+`"},"uid"`, 1)
	var flushed bytes.Buffer
	zip := gzip.NewWriter(&flushed)
	_, err := io.WriteString(zip, first+second)
	require.NoError(t, err)
	require.NoError(t, zip.Flush())
	for name, test := range map[string]struct{ encoding, piece string }{
		"plain":               {"", first + second},
		"one member":          {"gzip", string(member(t, first+second))},
		"a member each":       {"gzip", string(append(member(t, first), member(t, second)...))},
		"one member, flushed": {"gzip", flushed.String()},
	} {
		t.Run(name, func(t *testing.T) {
			var told time.Time
			send := sendingPieces(test.encoding, func(flush func(string), _ *http.Request) {
				time.Sleep(time.Hour)
				told = time.Now()
				flush(test.piece)
			})
			harness.Bubble(t, informertest.Options{BookmarkInterval: 24 * time.Hour, Wrap: harness.AnswerOnce(harness.IsWatch, send)}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/0")
				hold := make(chan struct{})
				config := w.Config()
				config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
					return roundTripper(func(r *http.Request) (*http.Response, error) {
						response, err := rt.RoundTrip(r)
						if err == nil && harness.IsWatch(r) {
							response.Body = lateBody{response.Body}
						}
						return response, err
					})
				})
				i := harness.Follow(w, informer.InformerConfig{
					ListerWatcher: harness.ListerOf(t, config), StallTimeout: 48 * time.Hour, MinWatchTimeout: 48 * time.Hour,
					Handler: informer.ResourceEventHandlerFuncs{AddFunc: func(obj interface{}) {
						if harness.Key(obj) == "a/y" {
							<-hold
						}
					}},
				})
				stop := harness.Start(i.RunWithContext)
				time.Sleep(time.Hour + 10*time.Second)
				require.Equal(t, 1, i.Status().Queued)
				require.False(t, i.Status().CurrentAsOf.After(told), "%v after it", i.Status().CurrentAsOf.Sub(told))
				close(hold)
				stop()
			})
		})
	}
}

// Client-go reads a watch of a ListerWatcher of ours. Each event comes at once.
func TestWatchOfAListerWatcherComesAtOnce(t *testing.T) {
	harness.Bubble(t, informertest.Options{GzipWatches: true, BookmarkInterval: 24 * time.Hour}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/0")
		watching, err := w.Factory().ForResource("", harness.Pods).Watch(metav1.ListOptions{})
		require.NoError(t, err)
		defer watching.Stop()
		for n := range 3 {
			synctest.Wait()
			select {
			case event := <-watching.ResultChan():
				require.Equal(t, fmt.Sprintf("a/%d", n), harness.Key(event.Object))
			default:
				t.Fatalf("event %d has not come", n)
			}
			w.CreatePods(fmt.Sprintf("a/%d", n+1))
		}
	})
}

// A watch that sends only empty members is silent: it is given up after its StallTimeout, as one of
// blank lines is, and not before.
func TestEmptyMembersAreSilence(t *testing.T) {
	for encoding, nothing := range map[string]string{"": "\n", "gzip": string(member(t, ""))} {
		for _, every := range []time.Duration{time.Second / 2, 50 * time.Second} {
			t.Run(fmt.Sprint(encoding, every), func(t *testing.T) {
				send := sendingPieces(encoding, func(flush func(string), r *http.Request) {
					for r.Context().Err() == nil {
						flush(nothing)
						time.Sleep(every)
					}
				})
				harness.Bubble(t, informertest.Options{Wrap: harness.AnswerOnce(harness.IsWatch, send)}, func(t *testing.T, w *harness.World) {
					w.CreatePods("a/0")
					var f harness.Failures
					var r harness.Recorder
					i := harness.Follow(w, informer.InformerConfig{Handler: &r, ErrorHandler: f.Handle, StallTimeout: 2 * time.Minute})
					stop := harness.Start(i.RunWithContext)
					time.Sleep(119 * time.Second)
					w.UpdatePod("a/0", "new")
					errs := f.Errors()
					require.Empty(t, errs)
					time.Sleep(time.Minute)
					w.RequireState(&r)
					errs, _ = f.All()
					require.NotEmpty(t, errs)
					harness.ErrorAs[*informer.StallError](t, errs[0])
					stop()
				})
			})
		}
	}
}

// The answer that a compressed redirect leads to is not compressed. Its bytes are counted, and it
// proves what it shows.
func TestCompressedRedirect(t *testing.T) {
	redirect := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.String()+"&again=1")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = w.Write(member(t, strings.Repeat("look there ", 10_000)))
	}
	harness.Bubble(t, informertest.Options{Wrap: harness.AnswerOnce(harness.IsWatch, redirect)}, func(t *testing.T, w *harness.World) {
		var r harness.Recorder
		i := harness.Follow(w, informer.InformerConfig{Handler: &r})
		stop := harness.Start(i.RunWithContext)
		time.Sleep(10 * time.Second)
		before := i.Status().Counts.ReceivedBytes
		w.CreatePods("a/0", "a/1")
		time.Sleep(10 * time.Minute)
		w.RequireState(&r)
		require.Greater(t, i.Status().Counts.ReceivedBytes, before+300)
		require.Less(t, time.Since(i.Status().CurrentAsOf), 2*time.Minute)
		stop()
	})
}
