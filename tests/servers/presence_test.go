package servers_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
	"github.com/rvinformer/informer/tests/harness"
)

// dialLog has the times at which a client has tried to connect.
type dialLog struct {
	mu    sync.Mutex
	times []time.Time
}

// install has the dials of config logged.
func (l *dialLog) install(config *rest.Config) *rest.Config {
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		l.mu.Lock()
		l.times = append(l.times, time.Now())
		l.mu.Unlock()
		return dial(ctx, network, address)
	}
	return config
}

// between returns the dials from one time until another.
func (l *dialLog) between(from, to time.Time) (times []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.times {
		if !at.Before(from) && at.Before(to) {
			times = append(times, at)
		}
	}
	return times
}

// mostInASecond is how many of sorted times lie within one second.
func mostInASecond(times []time.Time) (most int) {
	first := 0
	for i, at := range times {
		for at.Sub(times[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// tenants are many informers of one server.
type tenants struct {
	*harness.World
	dials     dialLog
	informers []informer.ResourceVersionInformer
}

// startTenants starts n informers, which end with the test, and returns when they watch.
func startTenants(w *harness.World, n int, tune func(*rest.Config)) *tenants {
	w.T.Helper()
	f := &tenants{World: w}
	config := w.Config()
	if tune != nil {
		tune(config)
	}
	f.dials.install(config)
	factory, err := informer.NewDynamicListerWatcherFactory(config)
	require.NoError(w.T, err)
	for range n {
		i := harness.Follow(w, informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Pods), Handler: &harness.Recorder{}})
		f.informers = append(f.informers, i)
		w.T.Cleanup(harness.Start(i.RunWithContext))
	}
	time.Sleep(time.Minute)
	require.EqualValues(w.T, n, f.current())
	return f
}

// current is how many informers watch, and find nothing wrong.
func (f *tenants) current() (n int) {
	for _, i := range f.informers {
		if i.Status().Condition.Reason == informer.ReasonCurrent {
			n++
		}
	}
	return n
}

// requireBack requires that 95 of 100 informers are current within 2 seconds, and all within 10.
func (f *tenants) requireBack() {
	f.T.Helper()
	began, all := time.Now(), len(f.informers)
	most := time.Duration(0)
	for f.current() < all {
		time.Sleep(20 * time.Millisecond)
		since := time.Since(began)
		if f.current()*100 < 95*all {
			most = since
		}
		require.LessOrEqual(f.T, since, 10*time.Second, "all are current")
	}
	f.T.Logf("95 of 100 current after %v, all after %v", most, time.Since(began))
	require.LessOrEqual(f.T, most, 2*time.Second, "95 of 100 are current")
}

func TestInformersOfServerThatIsAwayWaitTogether(t *testing.T) {
	for _, tls := range []bool{true, false} {
		for _, lasts := range []time.Duration{10 * time.Second, time.Minute, time.Hour} {
			t.Run(fmt.Sprintf("TLS=%v/%v", tls, lasts), func(t *testing.T) {
				if lasts > time.Minute && (tls || testing.Short()) {
					t.Skip("thousands of questions take long with the race detector, with TLS above all")
				}
				harness.Bubble(t, informertest.Options{TLS: tls}, func(t *testing.T, w *harness.World) {
					w.CreatePods("a/1")
					f := startTenants(w, 100, nil)
					left := time.Now()
					heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
					time.Sleep(lasts)
					require.Zero(t, f.current())
					for _, i := range f.informers {
						c := i.Status().Condition
						require.Equal(t, informer.ReasonServerUnreachable, c.Reason)
						require.WithinDuration(t, left, c.Since, time.Second)
					}
					attempts := f.dials.between(left, time.Now())
					require.LessOrEqual(t, mostInASecond(attempts), 2)
					require.Greater(t, len(attempts), int(lasts/(1300*time.Millisecond)), "it is asked all the time")
					back := time.Now()
					heal()
					f.requireBack()
					if tls {
						require.LessOrEqual(t, len(f.dials.between(back, time.Now())), 2, "they share connections")
					}
				})
			})
		}
	}
}

// blackHole is a network that loses what is sent. A dial sends again after 1 second, 3, 7 and 15,
// and fails after 30.
type blackHole struct{ on atomic.Bool }

func (b *blackHole) install(config *rest.Config) {
	dial := config.Dial
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		for _, again := range []time.Duration{1, 2, 4, 8, 15} {
			if !b.on.Load() {
				return dial(ctx, network, address)
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(again * time.Second):
			}
		}
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
	}
}

func TestInformersOfServerBehindBlackHoleWaitTogether(t *testing.T) {
	for _, lasts := range []time.Duration{20 * time.Second, 10 * time.Minute} {
		harness.BubbleRun(t, lasts.String(), informertest.Options{TLS: true}, func(t *testing.T, w *harness.World) {
			var hole blackHole
			f := startTenants(w, 50, hole.install)
			hole.on.Store(true)
			left := time.Now()
			w.CloseClientConnections()
			time.Sleep(lasts)
			attempts := f.dials.between(left, time.Now())
			require.LessOrEqual(t, mostInASecond(attempts), 2)
			require.Greater(t, len(attempts), int(lasts/(4*time.Second)))
			hole.on.Store(false)
			f.requireBack()
			time.Sleep(time.Minute) // until dials have ended that nobody waits for
		})
	}
}

// The server accepts connections, and answers nothing.
func TestInformersOfServerThatHangsWaitTogether(t *testing.T) {
	harness.Bubble(t, informertest.Options{TLS: true}, func(t *testing.T, w *harness.World) {
		f := startTenants(w, 50, nil)
		left := time.Now()
		heal := w.Inject(informertest.Fault{Effect: informertest.Hang()})
		w.CloseClientConnections()
		time.Sleep(3 * time.Minute)
		require.LessOrEqual(t, mostInASecond(f.dials.between(left, time.Now())), 2)
		require.Zero(t, f.current())
		heal()
		f.requireBack()
	})
}

// A load balancer whose servers are away answers for them. It is asked no more than once a second.
func TestInformersBehindLoadBalancerWithoutServersWaitTogether(t *testing.T) {
	for _, code := range []int{502, 503, 504} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			l, down := &lid{}, atomic.Bool{}
			balancer := harness.Before(func(w http.ResponseWriter, _ *http.Request) bool {
				if !down.Load() {
					return true
				}
				l.count()
				http.Error(w, "no server", code)
				return false
			})
			harness.Bubble(t, informertest.Options{TLS: true, Wrap: balancer}, func(t *testing.T, w *harness.World) {
				f := startTenants(w, 50, nil)
				down.Store(true)
				w.CloseClientConnections()
				time.Sleep(30 * time.Second)
				l.forget()
				time.Sleep(10 * time.Minute)
				require.Zero(t, f.current())
				require.LessOrEqual(t, l.busiest(), 100, "of 50 informers")
				down.Store(false)
				f.requireBack()
			})
		})
	}
}

// One group of the API is broken: its informers ask at their own pace, and the others notice
// nothing, also where the question is answered in the same way.
func TestBrokenGroupLeavesTheOthersAlone(t *testing.T) {
	for name, answersQuestions := range map[string]bool{"questions are answered": true, "questions are refused": false} {
		t.Run(name, func(t *testing.T) {
			l := &lid{}
			broken := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				isGroup := strings.Contains(r.URL.Path, "example.com")
				if isGroup {
					l.count()
				}
				if isGroup || r.URL.Path == "/version" && !answersQuestions {
					http.Error(w, "no endpoints", http.StatusServiceUnavailable)
					return false
				}
				return true
			})
			harness.Bubble(t, informertest.Options{TLS: true, Wrap: broken}, func(t *testing.T, w *harness.World) {
				factory := w.Factory()
				for range 20 {
					i := harness.Follow(w, informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Widgets), Handler: &harness.Recorder{}})
					defer harness.Start(i.RunWithContext)()
				}
				for range 10 {
					time.Sleep(7 * time.Second)
					i := harness.Follow(w, informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Pods), Handler: &harness.Recorder{}})
					defer harness.Start(i.RunWithContext)()
					time.Sleep(time.Second)
					require.Equal(t, informer.ReasonCurrent, i.Status().Condition.Reason)
				}
				time.Sleep(5 * time.Minute)
				l.forget()
				time.Sleep(10 * time.Minute)
				require.LessOrEqual(t, l.busiest(), 20*3, "each waits for 30 to 60 seconds")
			})
		})
	}
}

// The question is never answered, and all else is.
func TestUnansweredQuestionsDoNotKeepInformersWaiting(t *testing.T) {
	var down atomic.Bool
	deaf := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/version":
			<-r.Context().Done()
		case down.Load():
			http.Error(w, "away", http.StatusBadGateway)
		default:
			return true
		}
		return false
	})
	harness.Bubble(t, informertest.Options{TLS: true, Wrap: deaf}, func(t *testing.T, w *harness.World) {
		f := startTenants(w, 10, nil)
		down.Store(true)
		w.CloseClientConnections()
		time.Sleep(10 * time.Minute)
		require.Zero(t, f.current())
		down.Store(false)
		time.Sleep(75 * time.Second)
		require.Equal(t, 10, f.current())
	})
}

// The informer that asks for all is stopped: another one takes its place.
func TestInformerThatAsksIsStopped(t *testing.T) {
	harness.Bubble(t, informertest.Options{TLS: true}, func(t *testing.T, w *harness.World) {
		f := &tenants{World: w}
		factory, err := informer.NewDynamicListerWatcherFactory(f.dials.install(w.Config()))
		require.NoError(t, err)
		var stops []func()
		for range 20 {
			i := harness.Follow(w, informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Pods), Handler: &harness.Recorder{}})
			f.informers = append(f.informers, i)
			stops = append(stops, harness.Start(i.RunWithContext))
		}
		time.Sleep(time.Minute)
		heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
		for n := range 19 {
			stopped := time.Now()
			time.Sleep(10 * time.Second)
			require.GreaterOrEqual(t, len(f.dials.between(stopped, time.Now())), 7, "somebody asks")
			stops[n]()
		}
		f.informers = f.informers[19:]
		heal()
		f.requireBack()
		stops[19]()
	})
}

// A server that comes and goes is asked no oftener while it is away, and when it stays, all are
// back.
func TestInformersOfServerThatFlaps(t *testing.T) {
	for _, flap := range []time.Duration{500 * time.Millisecond, 5 * time.Second, 20 * time.Second} {
		harness.BubbleRun(t, flap.String(), informertest.Options{TLS: true}, func(t *testing.T, w *harness.World) {
			f := startTenants(w, 50, nil)
			w.ResetRequests()
			began := time.Now()
			flaps := int(5 * time.Minute / flap / 2)
			for range flaps {
				heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
				left := time.Now()
				time.Sleep(flap)
				if flap > time.Second { // else a connection may be lost while it is made
					require.LessOrEqual(t, mostInASecond(f.dials.between(left, time.Now())), 2)
				}
				heal()
				time.Sleep(flap)
			}
			require.LessOrEqual(t, len(f.dials.between(began, time.Now())), 2*600)
			require.LessOrEqual(t, len(w.Requests()), 50*10*oracle.Requests)
			time.Sleep(time.Minute)
			heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
			time.Sleep(time.Minute)
			heal()
			f.requireBack()
		})
	}
}

func TestInformersOfServerThatIsAwayWaitTogetherOverRealSockets(t *testing.T) {
	server := informertest.NewServer(informertest.Options{TLS: true})
	defer server.Close()
	w := &harness.World{T: t, Server: server}
	f := &tenants{World: w}
	factory, err := informer.NewDynamicListerWatcherFactory(f.dials.install(w.Config()))
	require.NoError(t, err)
	for range 20 {
		i := harness.Follow(w, informer.InformerConfig{ListerWatcher: factory.ForResource("", harness.Pods), Handler: &harness.Recorder{}})
		f.informers = append(f.informers, i)
		defer harness.Start(i.RunWithContext)()
	}
	const patience, often = time.Minute, 20 * time.Millisecond
	require.Eventually(t, func() bool { return f.current() == 20 }, patience, often)
	left := time.Now()
	heal := w.Inject(informertest.Fault{Effect: informertest.Refuse()})
	require.Eventually(t, func() bool { return len(f.dials.between(left, time.Now())) >= 5 && f.current() == 0 }, patience, often)
	require.LessOrEqual(t, mostInASecond(f.dials.between(left, time.Now())), 2)
	heal()
	healed := time.Now()
	require.Eventually(t, func() bool { return f.current() == 20 }, patience, often)
	// Another one dials when a connection takes a second, as it may on a busy machine.
	require.Less(t, len(f.dials.between(healed, time.Now())), 10, "they share connections")
}
