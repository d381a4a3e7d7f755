// Package rapidseed has the tests of rapid begin with the same seed in each run, so that what is
// red then is what has changed. The environment variable INFORMER_TORTURE_FROM sets another seed.
// Tests import the package for that effect alone.
package rapidseed

import (
	"cmp"
	"flag"
	"os"

	_ "pgregory.net/rapid" // has the flag
)

func init() {
	if err := flag.Set("rapid.seed", cmp.Or(os.Getenv("INFORMER_TORTURE_FROM"), "1")); err != nil {
		panic(err)
	}
}
