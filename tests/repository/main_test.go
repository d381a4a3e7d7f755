package repository_test

import (
	"os"
	"testing"

	"github.com/rvinformer/informer/tests/harness"
)

// TestMain runs the tests where their paths begin: at the root of the repository.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	harness.Main(m)
}
