package waiting_test

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/rvinformer/informer/internal/testkit/rapidseed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
