package sharing_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A server gives a version when a transaction begins, and shows its change when it commits: a change of
// an older version comes after one of a newer version. Each handler gets it, whenever it was added.
func TestHandlersGetLateEvents(t *testing.T) {
	for _, added := range []string{"before", "after", "between", "meanwhile"} {
		for _, change := range []string{"created", "changed", "deleted"} {
			a := &harness.Aggregated{}
			opts := informertest.Options{Wrap: a.Wrap}
			harness.BubbleRun(t, fmt.Sprint(added, " ", change), opts, func(t *testing.T, w *harness.World) {
				w.SetResourceVersion(1000)
				a.Put("a/known", 4)
				a.Put("a/late", 5)
				if change == "created" {
					a.Delete("a/late", 6)
				}
				s := harness.Share(w, informer.InformerConfig{ListMode: informer.ListModePaged})
				first, second := &harness.Recorder{}, &harness.Recorder{}
				harness.AddHandler(t, s, first)
				if added == "before" {
					harness.AddHandler(t, s, second)
				}
				defer harness.Settle(s.RunWithContext)()
				if added == "after" {
					harness.AddHandler(t, s, second)
					synctest.Wait()
				}
				a.Put("a/other", 9)
				synctest.Wait()
				if added == "between" {
					harness.AddHandler(t, s, second)
					synctest.Wait()
				}
				if change == "deleted" {
					a.Delete("a/late", 8)
				} else {
					a.Put("a/late", 8)
				}
				synctest.Wait()
				if added == "meanwhile" {
					harness.AddHandler(t, s, second)
					synctest.Wait()
				}
				harness.Sleep(time.Second)
				require.Equal(t, a.Versions(), first.State())
				require.Equal(t, a.Versions(), second.State())
				a.Put("a/known", 10)
				synctest.Wait()
				require.Equal(t, a.Versions(), second.State())
				require.EqualValues(t, 1, w.Watching.Load())
			})
		}
	}
}
