package tests_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// However the sets are read, the handlers are told by one watch.
func TestHandlersShareAWatch(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
		t.Run(mode.String(), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
				w.create(keys(5)...)
				s := share(w, informer.InformerConfig{ListMode: mode, WatchListPageSize: 2})
				a, b, late := &recorder{}, &recorder{}, &recorder{}
				adds(t, s, a)
				adds(t, s, b)
				defer start(s.RunWithContext)()
				synctest.Wait()
				require.True(t, s.HasSynced())
				require.EqualValues(t, 1, w.watching.Load())
				w.update("a/0001", "changed")
				w.remove("a/0002")
				synctest.Wait()
				h := adds(t, s, late)
				synctest.Wait()
				require.True(t, h.HasSynced())
				require.Equal(t, []string{"add a/0000 initial", "add a/0001 initial", "add a/0003 initial", "add a/0004 initial"}, late.events())
				require.EqualValues(t, 1, w.watching.Load())
				w.update("a/0003", "changed")
				w.create("a/0009")
				w.remove("a/0004")
				time.Sleep(time.Hour)
				for _, r := range []*recorder{a, b, late} {
					w.requireState(r)
					require.Equal(t, []string{"update a/0003", "add a/0009", "delete a/0004"}, r.events()[len(r.events())-3:])
				}
				w.requireOneWatch()
			})
		})
	}
}
