package delivery_test

import (
	"testing"

	"github.com/rvinformer/informer/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
