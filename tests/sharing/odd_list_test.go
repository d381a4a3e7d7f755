package sharing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A handler that is added while lists are older than what the shared watch has shown does not end that
// watch. An empty one hides nothing from it: it has not synced before the server proves the list.
func TestHandlerIsAddedWhileListsAreOlder(t *testing.T) {
	for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeAuto} {
		for _, items := range []string{"", harness.ItemJSON("b", "u", 3, "")} {
			var odd harness.OtherAnswer
			harness.BubbleRun(t, fmt.Sprint(mode, "/", items != ""), informertest.Options{Wrap: odd.Wrap}, func(t *testing.T, w *harness.World) {
				w.CreateKubeSystem()
				w.CreatePods(harness.Keys(10)...)
				s := harness.Share(w, informer.InformerConfig{ListMode: mode})
				var first, late harness.Recorder
				h := harness.AddHandler(t, s, &first)
				defer harness.Start(s.RunWithContext)()
				time.Sleep(time.Minute)
				odd.Set(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[` + items + `]}`)
				l := harness.AddHandler(t, s, &late)
				time.Sleep(30 * time.Second)
				require.Equal(t, items != "", l.HasSynced())
				require.Equal(t, informer.ReasonCurrent, h.Status().Condition.Reason)
				w.UpdatePod("a/0003", "changed")
				time.Sleep(time.Second)
				require.Contains(t, first.Events(), "update a/0003")
				odd.Set("")
				time.Sleep(time.Minute)
				w.RequireState(&first)
				require.NotContains(t, fmt.Sprint(first.Events()), "delete")
				require.True(t, l.HasSynced())
				if items == "" {
					w.RequireState(&late)
				}
			})
		}
	}
}
