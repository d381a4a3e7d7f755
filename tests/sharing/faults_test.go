package sharing_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// ice freezes single watches: no byte comes any more, and no end, while others go on.
type ice struct {
	mu      sync.Mutex
	watches int
	// after is how many bytes of a watch still come, by its number from 1 on; the others are not
	// frozen.
	after map[int]int
}

// freeze freezes a watch after so many bytes since its beginning.
func (i *ice) freeze(watch, bytes int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.after = map[int]int{watch: bytes}
}

func (i *ice) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			server.ServeHTTP(w, r)
			return
		}
		i.mu.Lock()
		i.watches++
		f := &freezing{ResponseWriter: w, ice: i, watch: i.watches, ctx: r.Context()}
		i.mu.Unlock()
		server.ServeHTTP(f, r)
		f.pass(0)
	})
}

type freezing struct {
	http.ResponseWriter
	*ice
	watch, written int
	ctx            context.Context
}

// pass returns when so many bytes more may pass.
func (f *freezing) pass(bytes int) {
	f.written += bytes
	f.mu.Lock()
	after, frozen := f.after[f.watch]
	f.mu.Unlock()
	if frozen && f.written > after {
		<-f.ctx.Done()
	}
}

func (f *freezing) Write(p []byte) (int, error) {
	f.pass(len(p))
	return f.ResponseWriter.Write(p)
}

func (f *freezing) Flush() { f.ResponseWriter.(http.Flusher).Flush() }

// A handler that has joined a watch that is dead leaves it when others do, or as soon as they would
// have: it has not seen how often that brings something.
func TestAHandlerThatJoinsADeadWatch(t *testing.T) {
	for name, alone := range map[string]bool{"with others": false, "alone": true} {
		t.Run(name, func(t *testing.T) {
			var cold ice
			harness.Bubble(t, informertest.Options{Wrap: cold.wrap}, func(t *testing.T, w *harness.World) {
				w.CreatePods(harness.Keys(3)...)
				s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
				early, late := &harness.Recorder{}, &harness.Recorder{}
				first := harness.AddHandler(t, s, early)
				defer harness.Start(s.RunWithContext)()
				time.Sleep(5*time.Minute + 10*time.Second)
				cold.freeze(1, 0)
				_, err := w.Create(harness.Widgets, harness.Object(harness.Widgets, "a/1", "moves the version on, past the bookmarks"))
				require.NoError(t, err)
				harness.AddHandler(t, s, late)
				synctest.Wait()
				w.RequireState(late)
				require.EqualValues(t, 1, w.Watching.Load())
				w.UpdatePod("a/0001", "changed")
				if alone {
					<-s.RemoveHandler(first)
				}
				time.Sleep(3 * time.Minute)
				if !alone {
					w.RequireState(early)
				}
				w.RequireState(late)
				require.EqualValues(t, 1, w.Watching.Load())
			})
		})
	}
}

// heldUp has a handler hang until the common watch is not read any further, while the objects
// change: a/0002 is deleted, and a/0009 is created. The backup is of before that.
func heldUp(t *testing.T, w *harness.World, s *informer.SharedResourceVersionInformer) (hangs *harness.Recorder, backup *informertest.Backup, release func()) {
	var hanging atomic.Bool
	held := make(chan struct{})
	hangs = &harness.Recorder{Before: func(string) {
		if hanging.Load() {
			<-held
		}
	}}
	_, err := s.AddHandler(informer.HandlerConfig{Handler: hangs, Budget: informer.NewBudget(2000)})
	require.NoError(t, err)
	synctest.Wait()
	hanging.Store(true)
	value := strings.Repeat("x", 1000)
	for n := range 20 {
		w.UpdatePod(fmt.Sprintf("a/%04d", n%2), fmt.Sprint(value, n))
	}
	synctest.Wait()
	backup = w.Backup()
	w.DeletePods("a/0002")
	w.CreatePods("a/0009")
	for n := range 1000 { // much more than 256 KiB
		w.UpdatePod(fmt.Sprintf("a/%04d", n%2), fmt.Sprint(value, n))
	}
	synctest.Wait()
	return hangs, backup, func() { close(held) }
}

// What a watch still holds from before the server was restored is not delivered to a handler that
// has listed since.
func TestAHandlerAddedAfterARestore(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		harness.BubbleRun(t, mode.String(), informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			s := harness.Share(w, informer.InformerConfig{ListMode: mode})
			defer harness.Start(s.RunWithContext)()
			hangs, backup, release := heldUp(t, w, s)
			w.Restore(backup)
			late := &harness.Recorder{}
			harness.AddHandler(t, s, late)
			time.Sleep(time.Minute)
			require.Equal(t, []string{"add a/0000 initial", "add a/0001 initial", "add a/0002 initial"}, late.Events())
			for n := range 30 {
				w.UpdatePod("a/0000", fmt.Sprint(n))
			}
			w.DeletePods("a/0001")
			time.Sleep(time.Second)
			w.RequireState(late)
			release()
			time.Sleep(time.Hour)
			w.RequireState(late)
			w.RequireState(hangs)
			require.NotContains(t, late.Events(), "delete a/0002")
			require.NotContains(t, late.Events(), "add a/0009")
			w.RequireOneWatch()
		})
	}
}

// When one handler has listed what shows that the server was restored, the others do not wait for
// their watch to end.
func TestARestoreThatOneHandlerNotices(t *testing.T) {
	var cold ice
	harness.Bubble(t, informertest.Options{Wrap: cold.wrap}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		early, late := &harness.Recorder{}, &harness.Recorder{}
		harness.AddHandler(t, s, early)
		defer harness.Settle(s.RunWithContext)()
		backup := w.Backup()
		w.UpdatePod("a/0001", "changed")
		w.DeletePods("a/0002")
		w.CreatePods("a/0009")
		synctest.Wait()
		cold.freeze(1, 0)
		w.Restore(backup)
		harness.AddHandler(t, s, late)
		time.Sleep(time.Minute) // it is asked twice, with pauses
		require.Equal(t, []string{"add a/0000 initial", "add a/0001 initial", "add a/0002 initial"}, late.Events())
		w.RequireState(early)
		require.EqualValues(t, 1, w.Watching.Load())
	})
}

// A watch that a handler opens to catch up, and that comes to a halt, holds up no other.
func TestHandlersDoNotJoinAWatchThatIsBehind(t *testing.T) {
	var cold ice
	harness.Bubble(t, informertest.Options{Wrap: cold.wrap}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
		fast := &harness.Recorder{}
		harness.AddHandler(t, s, fast)
		defer harness.Start(s.RunWithContext)()
		hangs, _, release := heldUp(t, w, s)
		time.Sleep(time.Second)
		w.RequireState(fast)
		cold.freeze(2, 100_000)
		release()
		for n := range 10 {
			time.Sleep(time.Second)
			w.UpdatePod("a/0000", fmt.Sprint(n))
		}
		time.Sleep(time.Second)
		w.RequireState(fast)
		time.Sleep(time.Hour)
		w.RequireState(hangs)
		w.RequireOneWatch()
	})
}

// What cannot be read off the common watch, each handler skips, counts, and lists for.
func TestSharedEventsThatCanNotBeRead(t *testing.T) {
	for name, effect := range map[string]informertest.Effect{"garbage": informertest.Garbage(1), "too large": informertest.Oversize(1, 17<<20)} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			s := harness.Share(w, informer.InformerConfig{})
			all := []*harness.Recorder{{}, {}, {}}
			for _, r := range all {
				harness.AddHandler(t, s, r)
			}
			defer harness.Settle(s.RunWithContext)()
			heal := w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: effect, Times: 1})
			w.UpdatePod("a/0000", "readable")
			w.DeletePods("a/0001")
			w.UpdatePod("a/0002", "readable")
			time.Sleep(time.Minute)
			heal()
			for _, h := range s.Handlers() {
				require.EqualValues(t, 1, h.Status().Skipped, h.Name())
			}
			require.EqualValues(t, 3, s.Status().Skipped)
			time.Sleep(time.Hour) // the watch ends in time
			w.RequireState(all...)
			w.RequireOneWatch()
		})
	}
}
