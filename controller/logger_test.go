package controller_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/rvinformer/informer/controller"
)

// Without a Log, a Controller logs with klog.
func TestNoLogIsKlog(t *testing.T) {
	log := newJournal()
	klog.SetSlogLogger(log.Logger)
	defer klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		w.create("a/1")
		x := &target{before: refusing(3, "upsert")}
		defer start(&controller.Controller{Resource: of(x)})()
		time.Sleep(time.Minute)
		require.Equal(w, w.has(), x.has())
	})
	require.Contains(t, log.String(), `msg="call failed and is tried again"`)
	require.Contains(t, log.String(), `op=Upsert key=a/1 attempt=1 error=refused`)
	require.NotRegexp(t, `level=(INFO|WARN|ERROR) msg="call failed[^\n]*attempt=[23]`, log.String(), "a retry is for debugging")
	require.Contains(t, log.String(), `msg="call has succeeded"`)
	require.Contains(t, log.String(), `op=Upsert key=a/1 failures=3 lasted=`)
	require.NotContains(t, log.String(), "BADKEY")
}
