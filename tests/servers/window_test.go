package servers_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// flood is a server whose lists and watches bring as much as is taken. It counts what it has sent
// in answers that have not ended.
type flood struct {
	sent atomic.Int64
	// listed is how many objects a list has, zero: as many as are taken.
	listed int
}

// largePod is a pod of 16 KiB.
func largePod(n int) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"a","name":"%07d","resourceVersion":"%d"},"data":"%s"}`, n, 10+n, strings.Repeat("x", 16<<10))
}

func (f *flood) serve(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isKubeSystem(r) {
			next.ServeHTTP(w, r)
			return
		}
		answer := &floodAnswer{ResponseWriter: w, sent: &f.sent}
		defer func() { f.sent.Add(-answer.own) }()
		w = answer
		w.Header().Set("Content-Type", "application/json")
		switch {
		case harness.IsWatchList(r):
			for n := range f.listed {
				f.event(w, "ADDED", n)
			}
			f.write(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
			fallthrough
		case harness.IsWatch(r):
			for n := 0; f.event(w, "MODIFIED", n); n++ {
			}
		default:
			f.write(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"first","resourceVersion":"1"}}`)
			for n := 0; f.listed == 0 || n < f.listed; n++ {
				if !f.write(w, ","+largePod(n)) {
					return
				}
			}
			f.write(w, "]}")
		}
	})
}

func (f *flood) event(w http.ResponseWriter, kind string, n int) bool {
	return f.write(w, fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1",%s}`+"\n", kind, largePod(n)[1:]))
}

func (f *flood) write(w http.ResponseWriter, text string) bool {
	_, err := io.WriteString(w, text)
	return err == nil
}

type floodAnswer struct {
	http.ResponseWriter
	sent *atomic.Int64
	own  int64
}

func (a *floodAnswer) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.own += int64(n)
	a.sent.Add(int64(n))
	return n, err
}

// blockedInformers runs informers whose handlers return when unblock is called.
func blockedInformers(t *testing.T, w *harness.World, n int, config informer.InformerConfig) (unblock func(), stop func()) {
	blocked, unblock := context.WithCancel(context.Background())
	config.Handler = &harness.Recorder{Before: func(string) { <-blocked.Done() }}
	factory := w.Factory()
	var stops []func()
	for range n {
		config.ListerWatcher = factory.ForResource("", harness.Pods)
		stops = append(stops, harness.Start(harness.Follow(w, config).RunWithContext))
	}
	return unblock, func() {
		unblock()
		for _, stop := range stops {
			stop()
		}
	}
}

// What a connection holds for readers that do not read is bounded, for each of them.
func TestUnreadAnswersCostLittle(t *testing.T) {
	const readers, each, limit = 12, 256 << 10, 8 << 20
	for name, test := range map[string]struct {
		mode   informer.ListMode
		listed int
	}{
		"watches":     {informer.ListModeFull, 1},
		"watch-lists": {informer.ListModeWatchList, 1},
		"lists":       {informer.ListModeFull, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := &flood{listed: test.listed}
			harness.Bubble(t, informertest.Options{TLS: true, Wrap: f.serve}, func(t *testing.T, w *harness.World) {
				budget := informer.NewBudget(limit)
				_, stop := blockedInformers(t, w, readers, informer.InformerConfig{ListMode: test.mode, Budget: budget})
				defer stop()
				time.Sleep(time.Minute)
				sent := f.sent.Load()
				// One object passes for each, and the server holds some too.
				require.Less(t, sent, int64(limit+readers*(each+2*20<<10)), "%d KiB each beyond the budget", (sent-limit)/readers>>10)
			})
		})
	}
}

// A watch that is left unread behind a wide window is dropped, and goes on when it is read again.
func TestUnreadWatchGoesOnWhereItWas(t *testing.T) {
	harness.Bubble(t, informertest.Options{TLS: true}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/0")
		var r harness.Recorder
		blocked, unblock := context.WithCancel(context.Background())
		r.Before = func(call string) {
			if call == "add a/1" {
				<-blocked.Done()
			}
		}
		var f harness.Failures
		i := harness.Running(w, informer.InformerConfig{ListMode: informer.ListModeWatchList, Handler: &r, ErrorHandler: f.Handle, Budget: informer.NewBudget(8 << 20)})
		defer unblock()
		<-i.HasSyncedChecker().Done()
		w.CreatePods("a/1")
		synctest.Wait()
		for n := range 14 {
			_, err := w.Create(harness.Pods, harness.Object(harness.Pods, fmt.Sprintf("a/large-%d", n), strings.Repeat("x", 1<<20)))
			require.NoError(t, err)
		}
		time.Sleep(10 * time.Second)
		require.Zero(t, w.Watching.Load())
		unblock()
		time.Sleep(time.Second)
		w.RequireState(&r)
		require.Equal(t, 1, strings.Count(strings.Join(w.Verbs(), "\n"), "watch-list"))
		require.NotContains(t, strings.Join(w.Verbs(), "\n"), "list limit")
		require.Empty(t, f.Errors())
		require.EqualValues(t, 1, w.Watching.Load())
		w.DeletePods("a/0")
		time.Sleep(time.Second)
		w.RequireState(&r)
	})
}

// A list that is left unread is dropped, and read again when its handler goes on. That is no error.
func TestUnreadListIsReadAgain(t *testing.T) {
	for name, test := range map[string]struct {
		mode     informer.ListMode
		requests int // the list, the list again, and a watch
	}{
		"pages": {informer.ListModePaged, 3}, "whole": {informer.ListModeFull, 3}, "watch-list": {informer.ListModeWatchList, 2},
	} {
		harness.BubbleRun(t, name, informertest.Options{TLS: true}, func(t *testing.T, w *harness.World) {
			for n := range 10 {
				_, err := w.Create(harness.Pods, harness.Object(harness.Pods, fmt.Sprintf("a/large-%02d", n), strings.Repeat("x", 1<<20)))
				require.NoError(t, err)
			}
			blocked, unblock := context.WithCancel(context.Background())
			config := w.Config()
			config.DisableCompression = true
			r, f := harness.Recorder{Before: func(string) { <-blocked.Done() }}, harness.Failures{}
			i := harness.Running(w, informer.InformerConfig{ListMode: test.mode, ListerWatcher: harness.ListerOf(t, config), Handler: &r,
				ExampleObject: &informer.RawObject{}, ErrorHandler: f.Handle, Budget: informer.NewBudget(2 << 20)})
			defer unblock()
			time.Sleep(time.Minute)
			require.False(t, i.HasSynced())
			require.Len(t, w.Verbs(), 1)
			unblock()
			time.Sleep(time.Minute)
			require.True(t, i.HasSynced())
			w.RequireState(&r)
			require.Empty(t, f.Errors())
			require.Len(t, w.Verbs(), test.requests, "%v", w.Verbs())
		})
	}
}

// Lists over a long link take no longer than one with a connection of client-go.
func TestListOverALongLinkIsNotSlowed(t *testing.T) {
	const delay, objects = 50 * time.Millisecond, 512 // one way; 8 MiB
	for name, mode := range map[string]informer.ListMode{"list": informer.ListModeFull, "watch-list": informer.ListModeWatchList} {
		t.Run(name, func(t *testing.T) {
			f := &flood{listed: objects}
			harness.Bubble(t, informertest.Options{TLS: true, Wrap: f.serve}, func(t *testing.T, w *harness.World) {
				config, closed := farAway(w.Config(), delay)
				defer closed()
				defer w.CloseClientConnections()
				config.DisableCompression = true

				client, err := rest.HTTPClientFor(config)
				require.NoError(t, err)
				began := time.Now()
				response, err := client.Get(w.URL() + "/api/v1/pods")
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				least := time.Since(began)

				factory, err := informer.NewDynamicListerWatcherFactory(config)
				require.NoError(t, err)
				began = time.Now()
				budget := informer.NewBudget(16 << 20)
				var all []informer.ResourceVersionInformer
				for range 4 {
					i := harness.Follow(w, informer.InformerConfig{ListMode: mode, ListerWatcher: factory.ForResource("", harness.Pods), ExampleObject: &informer.RawObject{},
						Budget: budget, Handler: &harness.Recorder{}})
					defer harness.Start(i.RunWithContext)()
					all = append(all, i)
				}
				for _, i := range all {
					<-i.HasSyncedChecker().Done()
				}
				took := time.Since(began)
				t.Logf("client-go's connection: %v, the informer: %v", least, took)
				require.LessOrEqual(t, took, least+4*delay)
			})
		})
	}
}

// farAway returns config with connections on which everything takes a time each way, and a function
// that waits until they are closed.
func farAway(config *rest.Config, delay time.Duration) (_ *rest.Config, closed func()) {
	config = rest.CopyConfig(config)
	dial := config.Dial
	var links sync.WaitGroup
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		far, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		near, end := net.Pipe()
		links.Go(func() { delayed(end, far, delay) })
		links.Go(func() { delayed(far, end, delay) })
		return near, nil
	}
	return config, links.Wait
}

// delayed copies what src brings to dst, later, until one of them is closed, and closes both.
func delayed(dst, src net.Conn, delay time.Duration) {
	type piece struct {
		due  time.Time
		text []byte
	}
	pieces := make(chan piece, 1<<16)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer dst.Close()
		defer src.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := dst.Write(p.text); err != nil {
				return
			}
		}
	})
	defer writing.Wait()
	defer close(pieces)
	for {
		text := make([]byte, 16<<10)
		n, err := src.Read(text)
		if err != nil {
			return
		}
		pieces <- piece{time.Now().Add(delay), text[:n]}
	}
}
