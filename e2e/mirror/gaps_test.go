package mirror

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// watchGaps looks five times a second which units have an owner that runs, until stop is called,
// which returns the longest time that one had none. Times of more than four leases are logged. The
// owners are not known while the API server of the home cluster is down: a time without an owner
// before and after that counts in full.
func (r *replicas) watchGaps(ctx context.Context, t *testing.T) (stop func() time.Duration) {
	t.Helper()
	_, deployed := mirrorArgs(t)
	admin, err := kubernetes.NewForConfig(home.Get(t).Config())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
	longest := make(chan time.Duration, 1)
	go func() {
		covered, gap := map[string]time.Time{}, time.Duration(0)
		for ctx.Err() == nil {
			asking, end := context.WithTimeout(ctx, 2*time.Second)
			found, err := admin.CoordinationV1().Leases(deployed.Namespace).List(asking, metav1.ListOptions{LabelSelector: "rvinformer.dev/role=unit"})
			end()
			now := time.Now()
			if err == nil {
				for _, l := range found.Items {
					if of := l.Spec; of.HolderIdentity != nil && of.AcquireTime != nil && r.owns(*of.HolderIdentity, of.AcquireTime.Time) {
						if last, known := covered[l.Name]; known {
							lasted := now.Sub(last)
							if gap = max(gap, lasted); lasted > 4*lease {
								t.Logf("%s: for %s no owner of it ran, now %s does", l.Name, lasted.Round(100*time.Millisecond), *of.HolderIdentity)
							}
						}
						covered[l.Name] = now
					}
				}
			}
			time.Sleep(200 * time.Millisecond)
		}
		longest <- gap
	}()
	stop = sync.OnceValue(func() time.Duration {
		cancel()
		return <-longest
	})
	t.Cleanup(func() { stop() })
	return stop
}

// owns reports whether a holder of a Lease that took it at a time is a replica that runs, in the
// life that it had then.
func (r *replicas) owns(holder string, since time.Time) bool {
	for _, each := range r.all {
		if began := each.up.Load(); strings.HasPrefix(holder, each.name+"_") {
			return began != nil && !since.Before(*began)
		}
	}
	return false
}
