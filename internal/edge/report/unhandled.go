package report

import (
	"context"
	"reflect"
	"runtime"
	"strings"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// Unhandled hands an error that has no caller to utilruntime.ErrorHandlers, as
// utilruntime.HandleErrorWithLogger does, but does not sleep. By default, one of these handlers
// sleeps until a millisecond after the error before. In a bubble of testing/synctest the clock is
// decades behind the start of the process, and the sleep lasts for as long.
func Unhandled(logger klog.Logger, err error, message string, keysAndValues ...any) {
	handleAwake(klog.NewContext(context.Background(), logger), err, message, keysAndValues...)
}

// handleAwake calls the handlers that do not sleep. It is a function of its own because handlers
// log the line three calls above them.
func handleAwake(ctx context.Context, err error, message string, keysAndValues ...any) {
	for _, handler := range utilruntime.ErrorHandlers {
		if !sleeps(handler) {
			handler(ctx, err, message, keysAndValues...)
		}
	}
}

// sleeps reports whether a handler is the one of utilruntime that sleeps. Only its name tells it
// from others.
func sleeps(handler utilruntime.ErrorHandler) bool {
	f := runtime.FuncForPC(reflect.ValueOf(handler).Pointer())
	return f != nil && strings.HasPrefix(f.Name(), "k8s.io/apimachinery/pkg/util/runtime.") && strings.Contains(f.Name(), "backoffError")
}
