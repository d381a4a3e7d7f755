package oracle_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
)

// BenchmarkCheck is the Check of a run of 10,000 writes, each told, with a claim after
// each and some restarts.
func BenchmarkCheck(b *testing.B) {
	for _, keys := range []int{1, 300, 10000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			o := longRun(keys)
			require.NoError(b, o.Check())
			b.ReportAllocs()
			for b.Loop() {
				_ = o.Check()
			}
		})
	}
}

func longRun(keys int) *oracle.Oracle {
	o := oracle.New(oracle.Options{})
	o.Started(oracle.Run{})
	o.Synced()
	known := map[string]string{}
	for n := range 10000 {
		key, version := fmt.Sprint("ns/pod-", n%keys), fmt.Sprint(n+1)
		w := oracle.Write{Type: oracle.Updated, Key: key, UID: "A", ResourceVersion: version}
		e := oracle.Event{Type: informer.Updated, Key: key, UID: "A", ResourceVersion: version}
		if _, exists := known[key]; !exists {
			w.Type, e.Type = oracle.Created, informer.Added
		}
		known[key] = version
		o.Wrote(w)
		o.Told(e)(nil)
		o.Claimed(oracle.FromStatus, version)
		if n%1000 == 999 {
			o.Claimed(oracle.FromCheckpoint, version)
			o.Stopped(false)
			copied := map[string]string{}
			for key, version := range known {
				copied[key] = version
			}
			o.Started(oracle.Run{Resumed: version, Known: copied})
		}
	}
	o.Settled(known)
	return o
}
