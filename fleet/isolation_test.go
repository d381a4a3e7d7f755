package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/statuspage"
)

// spoiled are servers that are not well, by what is wrong.
func spoiled(t *testing.T) map[string]*informertest.Server {
	hanging := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	forbidden := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
	}
	always := func(h http.HandlerFunc) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler { return h }
	}
	servers := map[string]*informertest.Server{
		"dead":      serve(t, informertest.Options{}),
		"silent":    serve(t, informertest.Options{Wrap: always(hanging)}),
		"forbidden": serve(t, informertest.Options{Wrap: always(forbidden)}),
		"slow":      serve(t, informertest.Options{}),
		"huge":      serve(t, informertest.Options{}),
	}
	servers["dead"].Inject(informertest.Fault{Effect: informertest.Refuse()})
	servers["slow"].Inject(informertest.Fault{Effect: informertest.Slow(1000)})
	for i := range 200 {
		create(t, servers["slow"], pods, fmt.Sprint("pod-", i))
	}
	servers["huge"].Inject(informertest.Fault{Effect: informertest.Slow(1 << 20)})
	require.NoError(t, servers["huge"].Load(pods, func(yield func(runtime.Object) bool) {
		for i := range 10_000 {
			if !yield(object(pods, "default", fmt.Sprint("pod-", i))) {
				return
			}
		}
	}))
	return servers
}

func TestBadClustersCostOthersNothing(t *testing.T) {
	const good = 8
	var alone, beside time.Duration
	measure := func(bad bool, took *time.Duration) {
		bubble(t, func(t *testing.T) {
			m := newMirror()
			f := newFleet(t, m, fleet.Config{})
			if bad {
				for name, s := range spoiled(t) {
					require.NoError(t, f.Add(name, s.Config()))
				}
			}
			var names []string
			var servers []*informertest.Server
			for i := range good {
				s := serve(t, informertest.Options{})
				s.Inject(informertest.Fault{Effect: informertest.Slow(20_000)})
				for n := range 100 {
					create(t, s, pods, fmt.Sprint("pod-", n))
				}
				names, servers = append(names, fmt.Sprint("good-", i)), append(servers, s)
				require.NoError(t, f.Add(names[i], s.Config()))
			}
			began := time.Now()
			start(t, f.Run)
			require.NoError(t, f.WaitForSync(t.Context(), names...))
			*took = time.Since(began)
			for i, s := range servers {
				m.requireRight(t, names[i], s, pods)
			}
			if !bad {
				return
			}
			time.Sleep(10 * time.Minute)
			states := map[string]fleet.ClusterState{}
			for _, c := range f.Clusters() {
				states[c.Name] = c.State
				if !strings.HasPrefix(c.Name, "good") && c.Name != "slow" && c.Name != "huge" {
					require.Error(t, c.LastError, c.Name)
					require.Zero(t, c.Informers, c.Name)
				}
			}
			for name, state := range map[string]fleet.ClusterState{"dead": fleet.ClusterUnknown, "silent": fleet.ClusterUnknown, "forbidden": fleet.ClusterUnknown, "slow": fleet.ClusterKnown, "huge": fleet.ClusterKnown, "good-0": fleet.ClusterKnown} {
				require.Equal(t, state, states[name], name)
			}
		})
	}
	measure(false, &alone)
	measure(true, &beside)
	t.Logf("synced in %v alone, in %v beside bad clusters", alone, beside)
	require.Positive(t, alone)
	require.Less(t, beside, alone*11/10+100*time.Millisecond)
}

// A cluster that does not answer is asked once per pause, not once for each resource.
func TestDeadClusterIsAskedOncePerPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []time.Time
		east := serve(t, informertest.Options{Wrap: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, time.Now())
				w.Header().Set("Retry-After", "1")
				http.Error(w, "no", http.StatusServiceUnavailable)
			})
		}})
		f := newFleet(t, newMirror(), fleet.Config{})
		require.NoError(t, f.Add("east", east.Config()))
		start(t, f.Run)
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		require.Less(t, len(asked), 60*60/25)
		require.Greater(t, len(asked), 60)
		for i := range asked[1:] {
			require.GreaterOrEqual(t, asked[i+1].Sub(asked[i]), 800*time.Millisecond)
		}
	})
}

// A server asks to be left alone: it is, but for no longer than DiscoverEvery.
func TestRetryAfterOfDiscoveryIsBounded(t *testing.T) {
	for after, want := range map[string]time.Duration{"100": 100 * time.Second, "86400": fleet.DefaultDiscoverEvery} {
		bubbleRun(t, after, func(t *testing.T) {
			var asked atomic.Int32
			east := serve(t, informertest.Options{Wrap: func(server http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if asked.Add(1) == 1 {
						w.Header().Set("Retry-After", after)
						http.Error(w, "no", http.StatusServiceUnavailable)
						return
					}
					server.ServeHTTP(w, r)
				})
			}})
			f := newFleet(t, newMirror(), fleet.Config{})
			require.NoError(t, f.Add("east", east.Config()))
			start(t, f.Run)
			time.Sleep(want - time.Second)
			require.EqualValues(t, 1, asked.Load(), "the server has asked to be left alone for %s s", after)
			time.Sleep(2 * time.Second)
			require.True(t, f.HasSynced())
		})
	}
}

// More clusters than may be discovered at a time are silent: the others are discovered all the
// same.
func TestSilentClustersLeaveTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMirror()
		f := newFleet(t, m, fleet.Config{})
		for i := range 40 {
			s := serve(t, informertest.Options{Wrap: func(http.Handler) http.Handler {
				return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			}})
			require.NoError(t, f.Add(fmt.Sprint("silent-", i), s.Config()))
		}
		stop := start(t, f.Run)
		synctest.Wait() // they have all turns
		east := serve(t, informertest.Options{})
		require.NoError(t, f.Add("east", east.Config()))
		began := time.Now()
		require.NoError(t, f.WaitForSync(t.Context(), "east"))
		require.LessOrEqual(t, time.Since(began), time.Second)
		time.Sleep(time.Minute)
		now, _ := f.Cluster("silent-0")
		require.ErrorContains(t, now.LastError, "silent for 30s")
		stop()
	})
}

// Removed in the middle of a list, a cluster ends at once, and nothing of it is told after that.
func TestRemoveAmidList(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		for i := range 2000 {
			create(t, east, pods, fmt.Sprint("pod-", i))
		}
		east.Inject(informertest.Fault{Match: informertest.Match{Resource: pods}, Effect: informertest.Slow(20_000)})
		m := newMirror()
		f := newFleet(t, m, fleet.Config{})
		require.NoError(t, f.Add("east", east.Config()))
		start(t, f.Run)
		time.Sleep(10 * time.Second)
		known := len(m.keys("east", pods))
		require.Positive(t, known)
		require.Less(t, known, 2000)
		began := time.Now()
		<-f.Remove("east")
		require.Less(t, time.Since(began), time.Second)
		m.told("east", pods)
		time.Sleep(time.Minute)
		require.Empty(t, m.told("east", pods))

		// Its state goes on from where it was.
		require.NoError(t, f.Add("east", east.Config()))
		east.Heal()
		require.NoError(t, f.WaitForSync(t.Context()))
		m.requireRight(t, "east", east, pods)
	})
}

// Run ends at whatever point its context does: nothing is left, and another Run goes on.
func TestContextEndsAtEveryPoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Resources: withDefinitions()})
		define(t, east, gadgets)
		create(t, east, gadgets, "a")
		east.Inject(informertest.Fault{Effect: informertest.Slow(500)})
		for after := time.Duration(0); after < 8*time.Second; after += 97 * time.Millisecond {
			m := newMirror()
			f := newFleet(t, m, fleet.Config{})
			require.NoError(t, f.Add("east", east.Config()))
			ctx, cancel := context.WithTimeout(t.Context(), after)
			f.Run(ctx)
			require.Less(t, time.Since(deadline(ctx)), time.Second, "after %v", after)
			cancel()
			now, _ := f.Cluster("east")
			require.Equal(t, fleet.ClusterIdle, now.State)
			require.Zero(t, now.Informers)
			<-f.Remove("east")
		}
	})
}

func deadline(ctx context.Context) time.Time {
	at, _ := ctx.Deadline()
	return at
}

// A discovery without end takes no more memory than an answer may.
func TestEndlessDiscovery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Wrap: func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				chunk := []byte(strings.Repeat(" ", 1<<20))
				for r.Context().Err() == nil {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			})
		}})
		f := newFleet(t, newMirror(), fleet.Config{})
		require.NoError(t, f.Add("east", east.Config()))
		stop := start(t, f.Run)
		time.Sleep(100 * time.Millisecond)
		now, _ := f.Cluster("east")
		require.ErrorContains(t, now.LastError, "more than 32 MiB")
		stop()
	})
}

// A cluster whose certificate is signed by another authority than that of its configuration is one that
// cannot be reached, from the first failure on.
func TestDiscoveryWithAWrongCA(t *testing.T) {
	east := informertest.NewServer(informertest.Options{TLS: true})
	defer east.Close()
	config := east.Config()
	config.CAData = nil
	collector := metrics.NewCollector()
	f := newFleet(t, newMirror(), fleet.Config{})
	defer f.ShowOn(nil, collector)()
	require.NoError(t, f.Add("east", config))
	defer start(t, f.Run)()
	require.Eventually(t, func() bool {
		now, _ := f.Cluster("east")
		return now.LastError != nil && strings.Contains(now.LastError.Error(), "the CA of the rest.Config has not signed the server's certificate")
	}, time.Minute, time.Millisecond)
	var text strings.Builder
	require.NoError(t, collector.WriteText(&text))
	require.Contains(t, text.String(), `informer="discovery",reason="ServerUnreachable",resource="",version=""} 1`)
}

// The page and the metrics show the discovery of each cluster, as clusters come and go, and the
// informers.
func TestShowOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		page, collector := statuspage.New(), metrics.NewCollector()
		east, west := serve(t, informertest.Options{}), serve(t, informertest.Options{})
		west.Inject(informertest.Fault{Effect: informertest.Refuse()})
		f := newFleet(t, newMirror(), fleet.Config{})
		require.NoError(t, f.Add("east", east.Config()))
		remove := f.ShowOn(page, collector)
		text := func() string {
			var b strings.Builder
			require.NoError(t, collector.WriteText(&b))
			return b.String()
		}
		condition := func(cluster string, is informer.ConditionReason) string {
			return fmt.Sprintf(`rvinformer_condition{cluster="%s",group="",informer="discovery",reason="%s",resource="",version=""} 1`, cluster, is)
		}
		require.NoError(t, f.Add("west", west.Config()))
		require.Contains(t, text(), condition("west", informer.ReasonNotStarted))
		start(t, f.Run)
		require.NoError(t, f.WaitForSync(t.Context(), "east"))
		time.Sleep(30 * time.Second)
		require.Contains(t, text(), condition("east", informer.ReasonCurrent))
		require.Contains(t, text(), condition("west", informer.ReasonServerUnreachable))
		require.Contains(t, text(), `cluster="east",group="apps",informer="resource-version/all"`)
		require.ErrorContains(t, page.Ready(nil), "west", "its resources are not known")
		time.Sleep(time.Minute)
		require.NoError(t, page.Ready(nil), "a cluster that cannot be reached holds up no others")
		<-f.Remove("west")
		require.NoError(t, page.Ready(nil))
		require.NotContains(t, text(), `"west"`)
		remove()
		require.NotContains(t, text(), "east")
	})
}

// A configuration with a wrong address is an error of the server, not of others.
func TestUnreachableAddress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t, newMirror(), fleet.Config{})
		require.NoError(t, f.Add("nowhere", &rest.Config{Host: "http://" + "127.0.0.1:1"}))
		start(t, f.Run)
		time.Sleep(time.Minute)
		now, _ := f.Cluster("nowhere")
		require.Equal(t, fleet.ClusterUnknown, now.State)
		require.ErrorContains(t, now.LastError, "127.0.0.1:1")

		waited := make(chan error)
		go func() { waited <- f.WaitForSync(t.Context()) }()
		synctest.Wait()
		f.Remove("nowhere")
		require.NoError(t, <-waited, "a cluster that is removed is not waited for")
	})
}
