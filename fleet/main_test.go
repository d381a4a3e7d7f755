package fleet_test

import (
	"log/slog"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	_ "github.com/rvinformer/informer/internal/rapidseed"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go has much to say of dead servers
	utilruntime.ErrorHandlers = nil                   // one sleeps by the time since the last error, which in a bubble is decades
	goleak.VerifyTestMain(m)
}
