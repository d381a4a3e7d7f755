package fleet_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	_ "github.com/rvinformer/informer/internal/testkit/rapidseed"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go has much to say of dead servers
	goleak.VerifyTestMain(m)
}
