package status_test

import (
	"testing"

	"github.com/rvinformer/informer/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
