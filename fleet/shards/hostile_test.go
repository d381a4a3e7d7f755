package shards_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

// edit changes a Lease as somebody with kubectl does.
func (w *world) edit(name string, change func(*coordinationv1.Lease)) {
	w.t.Helper()
	lease := w.lease(name)
	change(lease)
	_, err := clientset(w.t, w.server.Config()).CoordinationV1().Leases("fleet").Update(w.t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func TestLabelsThatSomebodyRemovesComeBack(t *testing.T) {
	for _, label := range []string{"rvinformer.dev/fleet", "rvinformer.dev/role"} {
		bubble(t, 4, func(t *testing.T, w *world) {
			a, b := w.startTwo()
			for _, u := range a.Status().Units {
				w.edit(u.Lease, func(l *coordinationv1.Lease) { delete(l.Labels, label) })
			}
			time.Sleep(settled)
			_, uncovered := w.owned()
			require.Zero(t, uncovered)
			moved := a.Status().Owned()
			require.NotEmpty(t, moved)
			w.end(a)
			t.Log("covered after", w.covered(settled))
			for _, u := range moved {
				require.Contains(t, w.lease(u.Lease).Labels, label)
			}
			w.end(b)
			w.increasing()
			w.alone()
		})
	}
}

func TestLeaseOfAnotherUnitIsAProblem(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		name := a.Status().Units[0].Lease
		w.end(a)
		w.edit(name, func(l *coordinationv1.Lease) { l.Annotations["rvinformer.dev/unit"] = "other/all" })
		b := w.start("b")
		time.Sleep(2 * settled)
		require.Len(t, b.Status().Uncovered(), 1)
		require.Len(t, b.Status().Problems, 1)
		require.ErrorContains(t, b.Status().Problems[0].Err, `is of the unit "other/all", not of "cluster-000/all"`)
		w.end(b)
	})
}

func TestSlowServerIsEnough(t *testing.T) {
	for _, delay := range []time.Duration{time.Second, 3 * time.Second} {
		bubble(t, 4, func(t *testing.T, w *world) {
			a, b := w.start("a"), w.start("b")
			a.net.set(func(n *network) { n.steady = delay })
			b.net.set(func(n *network) { n.steady = delay })
			time.Sleep(2 * time.Minute)
			w.covered(0)
			t.Log(w.owned())
			w.end(a, b)
			w.increasing()
		})
	}
}

func TestRefusedRenewalsAreAProblem(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		a.net.partition()
		time.Sleep(20 * time.Second)
		var doing []string
		for _, p := range a.Status().Problems {
			doing = append(doing, p.Doing)
		}
		require.Contains(t, doing, "renewing the member lease")
		a.net.heal()
		time.Sleep(settled)
		require.Empty(t, a.Status().Problems)
		w.end(a)
	})
}

// Two replicas with one Identity both say so, until one of them ends. One that was started again does not.
func TestIdentityOfTwoReplicasIsAProblem(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world) {
		doubles := func(r *replica) (found []string) {
			for _, p := range r.Status().Problems {
				found = append(found, p.String())
			}
			return found
		}
		a := w.start("same")
		w.covered(settled)
		time.Sleep(settled)
		a.net.partition() // as if it was killed
		b := w.start("same")
		time.Sleep(time.Minute)
		require.Empty(t, doubles(b))
		a.net.heal()
		time.Sleep(time.Minute)
		require.Equal(t, []string{`having an Identity of its own: another replica that runs has the Identity "same" too, and is ` + b.Identity() + " in the Leases"}, doubles(a))
		require.Len(t, doubles(b), 1)
		w.end(a)
		time.Sleep(time.Minute)
		require.Empty(t, doubles(b))
		w.end(b)
	})
}

// conflicting answers each write of a Lease whose name contains a text with 409.
func conflicting(name string) func(http.RoundTripper) http.RoundTripper {
	return refusing(name, http.StatusConflict, metav1.StatusReasonConflict)
}

// refusing answers each write of a Lease whose name contains a text with an error.
func refusing(name string, code int, reason metav1.StatusReason) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			write := req.Method == http.MethodPut || req.Method == http.MethodPost
			if !write || req.Body == nil {
				return next.RoundTrip(req)
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			if !bytes.Contains(body, []byte(name)) {
				req.Body = io.NopCloser(bytes.NewReader(body))
				return next.RoundTrip(req)
			}
			text := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"the object has been modified"}`, reason, code)
			return &http.Response{
				StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
				Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
			}, nil
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Conflicts that do not end are no race: nothing is owned, and the status says why. The writes are
// tried again after pauses.
func TestConflictsWithoutEndAreAProblem(t *testing.T) {
	for name, doing := range map[string]string{"test-member-": "renewing the member lease", "test-unit-": "taking cluster-000/all"} {
		bubble(t, 1, func(t *testing.T, w *world) {
			var writes atomic.Int32
			config := w.server.Config()
			config.Wrap(conflicting(name))
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					if req.Method != http.MethodGet {
						writes.Add(1)
					}
					return next.RoundTrip(req)
				})
			})
			a := w.start("a", func(c *shards.Config, _ *replica) { c.Client = clientset(t, config).CoordinationV1() })
			time.Sleep(time.Minute)
			require.Empty(t, a.Status().Owned())
			// Without a Lease the watch has nothing to show, so that it may be a problem too.
			problems := slices.DeleteFunc(a.Status().Problems, func(p shards.Problem) bool { return p.Doing == "watching leases" })
			require.Len(t, problems, 1)
			require.Equal(t, doing, problems[0].Doing)
			require.ErrorContains(t, problems[0].Err, "the object has been modified")
			require.Less(t, writes.Load(), int32(200))
			w.end(a)
		})
	}
}

// One conflict after other failures is a race: the problem is still theirs.
func TestOneConflictAfterOtherFailuresIsARace(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		var tries atomic.Int32
		config := w.server.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			forbidden := refusing("test-unit-", http.StatusForbidden, metav1.StatusReasonForbidden)(next)
			conflict := conflicting("test-unit-")(next)
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				through := next
				switch n := tries.Load(); {
				case n < 2:
					through = forbidden
				case n == 2:
					through = conflict
				}
				resp, err := through.RoundTrip(req)
				if err == nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusConflict) {
					tries.Add(1)
				}
				return resp, err
			})
		})
		a := w.start("a", func(c *shards.Config, _ *replica) { c.Client = clientset(t, config).CoordinationV1() })
		for tries.Load() < 3 {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		problems := a.Status().Problems
		require.Len(t, problems, 1)
		require.Equal(t, "taking cluster-000/all", problems[0].Doing)
		require.True(t, apierrors.IsForbidden(problems[0].Err), problems[0].Err)
		w.covered(time.Second)
		w.end(a)
	})
}

// A unit that could not be taken is tried again after a quarter of RetryPeriod if there was a conflict,
// and otherwise after half of it, although nothing else happens.
func TestUnitIsTriedAgainSoon(t *testing.T) {
	const period = 2 * time.Second // the default
	for code, test := range map[int]struct {
		reason metav1.StatusReason
		pause  time.Duration
	}{
		http.StatusConflict:  {metav1.StatusReasonConflict, period / 4},
		http.StatusForbidden: {metav1.StatusReasonForbidden, period / 2},
	} {
		bubble(t, 1, func(t *testing.T, w *world) {
			var mu sync.Mutex
			var refused []time.Time
			config := w.server.Config()
			config.Wrap(refusing("test-unit-", code, test.reason))
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(req)
					if err == nil && resp.StatusCode == code {
						mu.Lock()
						defer mu.Unlock()
						refused = append(refused, time.Now())
					}
					return resp, err
				})
			})
			a := w.start("a", func(c *shards.Config, _ *replica) { c.Client = clientset(t, config).CoordinationV1() })
			time.Sleep(time.Minute)
			w.end(a)
			require.Greater(t, len(refused), 20)
			for i := 1; i < len(refused); i++ {
				require.InDelta(t, test.pause, refused[i].Sub(refused[i-1]), float64(50*time.Millisecond), "try %d", i)
			}
		})
	}
}

// A release that meets nothing but conflicts is tried with pauses, and given up.
func TestReleaseThatConflictsEnds(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		var conflicts atomic.Bool
		writes := 0
		config := w.server.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			conflict := conflicting("test-unit-")(next)
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if !conflicts.Load() {
					return next.RoundTrip(req)
				}
				if strings.Contains(req.URL.Path, "test-unit-") && req.Method == http.MethodPut {
					writes++
				}
				return conflict.RoundTrip(req)
			})
		})
		a := w.start("a", func(c *shards.Config, _ *replica) { c.Client = clientset(t, config).CoordinationV1() })
		w.covered(settled)
		conflicts.Store(true)
		w.end(a)
		require.Greater(t, writes, 1)
		require.Less(t, writes, 50)
	})
}

// The Lease of a living member is deleted while it cannot renew it: it works until its renewal
// deadline, and the others wait for that.
func TestDeletedMemberLeaseLastsToItsEnd(t *testing.T) {
	bubble(t, 6, func(t *testing.T, w *world) {
		a, b := w.startTwo()
		a.net.partition()
		require.NoError(t, w.server.Delete(leases, "fleet", w.memberLease(a)))
		time.Sleep(30 * time.Second)
		counts, _ := w.owned()
		require.Equal(t, map[string]int{"b": 6}, counts)
		w.alone()
		a.net.heal()
		time.Sleep(settled)
		counts, _ = w.owned()
		require.Len(t, counts, 2)
		w.end(a, b)
		w.alone()
		w.increasing()
	})
}

// A member's Lease is gone when another replica asks for it. The answer arrives after the watch has
// shown the member's new Lease, so that it says nothing of the member.
func TestAnswerFromBeforeNewMemberLeaseTakesNothing(t *testing.T) {
	bubble(t, 6, func(t *testing.T, w *world) {
		asked, arrive := make(chan struct{}), make(chan struct{})
		var late atomic.Pointer[string] // the Lease whose first answer is late
		config := w.server.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				resp, err := next.RoundTrip(req)
				if name := late.Load(); name != nil && strings.HasSuffix(req.URL.Path, "/"+*name) && late.CompareAndSwap(name, nil) {
					close(asked)
					<-arrive
				}
				return resp, err
			})
		})
		a, b := w.start("a"), w.start("b", func(c *shards.Config, _ *replica) { c.Client = clientset(t, config).CoordinationV1() })
		w.covered(settled)
		time.Sleep(settled)
		before := w.ownersNow()
		lease := w.memberLease(a)
		a.net.partition()
		require.NoError(t, w.server.Delete(leases, "fleet", lease))
		late.Store(&lease)
		<-asked
		a.net.heal()
		time.Sleep(3 * time.Second)
		require.Equal(t, before, w.ownersNow(), "it goes on with its units")
		close(arrive)
		time.Sleep(time.Second)
		require.Equal(t, before, w.ownersNow())
		w.end(a, b)
		w.alone()
		w.increasing()
	})
}

// memberLease returns the name of a replica's member Lease.
func (w *world) memberLease(r *replica) string {
	w.t.Helper()
	all, err := clientset(w.t, w.server.Config()).CoordinationV1().Leases("fleet").List(w.t.Context(), metav1.ListOptions{LabelSelector: "rvinformer.dev/role=member"})
	require.NoError(w.t, err)
	for _, l := range all.Items {
		if *l.Spec.HolderIdentity == r.Identity() {
			return l.Name
		}
	}
	require.Fail(w.t, "no member Lease", r.name)
	return ""
}

func TestEpochThatSomebodyChanges(t *testing.T) {
	for how, change := range map[string]func(*coordinationv1.Lease){
		"set back": func(l *coordinationv1.Lease) { l.Annotations["rvinformer.dev/epoch"] = "0" },
		"removed":  func(l *coordinationv1.Lease) { delete(l.Annotations, "rvinformer.dev/epoch") },
	} {
		t.Run(how, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, w *world) {
				a := w.start("a")
				w.covered(settled)
				name := a.Status().Units[0].Lease
				for range 3 {
					w.edit(name, change)
					time.Sleep(settled)
					w.covered(0)
				}
				require.Len(t, w.epochs[w.units[0]], 4)
				w.increasing()
				w.end(a)
			})
		})
	}
}

func TestEpochThatIsTheLastIsAProblem(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		a := w.start("a")
		w.covered(settled)
		w.edit(a.Status().Units[0].Lease, func(l *coordinationv1.Lease) {
			l.Annotations["rvinformer.dev/epoch"] = strconv.FormatInt(math.MaxInt64, 10)
		})
		time.Sleep(settled)
		_, uncovered := w.owned()
		require.Equal(t, 1, uncovered)
		require.Len(t, a.Status().Problems, 1)
		require.ErrorContains(t, a.Status().Problems[0].Err, "there are no epochs above 9223372036854775807")
		w.end(a)
	})
}

// Members with other shards of the same group overlap, and no epoch fences them from each other. So
// one waits until the other has gone.
func TestOtherShardsOfAGroupWait(t *testing.T) {
	bubble(t, 3, func(t *testing.T, w *world) {
		old, other := w.start("old"), w.start("other")
		w.covered(settled)
		time.Sleep(settled)
		var sharded []fleet.Unit
		for i := range 3 {
			for _, s := range (informer.Shard{Key: informer.ShardByUID}).Split(2) {
				sharded = append(sharded, fleet.Unit{Cluster: fmt.Sprintf("cluster-%03d", i), Group: "all", Shard: s})
			}
		}
		w.end(other)
		next := w.start("next", func(_ *shards.Config, r *replica) { r.set = sharded })
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int{"old": 3}, w.running())
		w.end(old)
		time.Sleep(3 * time.Second)
		require.Equal(t, map[string]int{"next": 6}, w.running())

		// The same while it runs.
		next.use(w.units)
		time.Sleep(3 * time.Second)
		require.Equal(t, map[string]int{"next": 3}, w.running())
		w.end(next)
		w.increasing()
	})
}

// running counts the units that each replica runs, also those that are not the world's.
func (w *world) running() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for _, owners := range w.owners {
		for _, o := range owners {
			counts[o]++
		}
	}
	return counts
}
