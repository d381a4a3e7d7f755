package status_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

var errWebhook = errors.New(`conversion webhook for example.com/v1, Kind=Widget failed: Post "https://converter.a.svc:443/convert": service "converter" not found`)

// A server that fails with one resource, because its conversion webhook is gone, is there. The
// condition names the webhook, and the informers of other resources do not notice.
func TestConditionOfConversionWebhookThatIsGone(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "after 30 seconds": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			gone := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/widgets") {
					return true
				}
				time.Sleep(takes)
				harness.AnswerStatus(w, apierrors.NewInternalError(errWebhook))
				return false
			})
			harness.Bubble(t, informertest.Options{Wrap: gone}, func(t *testing.T, w *harness.World) {
				w.CreatePods("a/1")
				log, lws := newLogbook(), w.Factory()
				var r harness.Recorder
				follow := func(gvr schema.GroupVersionResource, handler informer.ResourceEventHandler) informer.ResourceVersionInformer {
					i := informer.NewResourceVersionInformer(gvr.Resource, informer.InformerConfig{
						ListerWatcher: lws.ForResource("", gvr), Handler: handler, ErrorHandler: harness.IgnoreErrors,
					})
					t.Cleanup(harness.Start(func(ctx context.Context) { i.RunWithContext(klog.NewContext(ctx, log.Logger)) }))
					return i
				}
				pods, widgets := follow(harness.Pods, &r), follow(harness.Widgets, &harness.Recorder{})
				began := time.Now()
				for range 20 {
					time.Sleep(time.Minute)
					w.UpdatePod("a/1", time.Now().String())
					harness.Sleep(0)
					w.RequireState(&r)
					require.Equal(t, informer.ReasonCurrent, pods.Status().Condition.Reason)
					requireCondition(t, informer.ReasonFailing, began, 61*time.Second, widgets.Status().Condition)
					require.Contains(t, widgets.Status().Condition.Message, `service "converter" not found`)
				}
				for _, line := range log.lines() {
					require.NotEqual(t, "Server is away", line.message)
				}
			})
		})
	}
}
