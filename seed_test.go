package informer_test

import (
	"cmp"
	"flag"
	"os"
)

// Rapid begins where it has begun in the last run, or at INFORMER_TORTURE_FROM: what is red then is what has changed.
func init() {
	if err := flag.Set("rapid.seed", cmp.Or(os.Getenv("INFORMER_TORTURE_FROM"), "1")); err != nil {
		panic(err)
	}
}
