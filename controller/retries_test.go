package controller_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/controller"
	"github.com/rvinformer/informer/tests/harness"
)

// S4-05: a call that fails is made six times, 5 ms after the first one and then after twice
// as long each time. Then it is given up and reported.
func TestACallThatFailsIsGivenUp(t *testing.T) {
	for _, test := range []struct{ maxRetries, calls int }{{0, 6}, {2, 3}} {
		bubble(t, func(w *world) {
			w.create("a/1", "a/2")
			x := target{before: refusing(-1, "upsert a/1", "delete a/2")}
			var gone givenUp
			log := newJournal()
			defer start(&controller.Controller{Resource: x.of(w.shared()), MaxRetries: test.maxRetries, OnGiveUp: gone.add, Log: log})()
			time.Sleep(time.Second)
			require.Len(w, x.told(), 1+test.calls)
			require.Len(w, gone.list(), 1)
			require.Contains(w, gone.list()[0], `a/1=1: Upsert "a/1", attempt `)
			errs := w.reported()
			require.Len(w, errs, 1)
			var failed *controller.CallError
			require.ErrorAs(w, errs[0], &failed)
			require.Equal(w, &controller.CallError{Op: "Upsert", Key: "a/1", Attempts: test.calls, Err: errRefused}, failed)
			require.ErrorIs(w, errs[0], errRefused)
			require.Contains(w, log.String(), "level=WARN")
			require.Contains(w, log.String(), "level=ERROR")
			require.NotContains(w, log.String(), "BADKEY")

			w.DeletePods("a/2")
			time.Sleep(time.Second)
			require.Equal(w, slices.Repeat([]string{"delete a/2=1"}, test.calls), x.told())
			require.Len(w, gone.list(), 2)
			require.Contains(w, gone.list()[1], `a/2=1: Delete "a/2", attempt `)
			time.Sleep(time.Hour)
			require.Empty(w, x.told())
		})
	}
}

// S4-02, S4-05: when a call that fails is tried again.
func TestWhenACallIsTriedAgain(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		var at []time.Duration
		begin := time.Now()
		x := target{before: func(string) error {
			at = append(at, time.Since(begin))
			return errRefused
		}}
		stop := start(&controller.Controller{Resource: x.of(w.shared())})
		time.Sleep(time.Hour)
		stop()
		var between []time.Duration
		for i := range at[1:] {
			between = append(between, at[i+1]-at[i])
		}
		const ms = time.Millisecond
		require.Equal(w, []time.Duration{5 * ms, 10 * ms, 20 * ms, 40 * ms, 80 * ms}, between)
	})
}

// Bug f of S4: what has failed was counted for what came later, and had to wait as long.
func TestANewerEventStartsAnew(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		x := target{before: refusing(-1, "upsert")}
		var gone givenUp
		defer start(&controller.Controller{Resource: x.of(w.shared()), OnGiveUp: gone.add})()
		time.Sleep(50 * time.Millisecond)
		require.Len(w, x.told(), 4, "after 0, 5, 15 and 35 ms")
		w.UpdatePod("a/1", "2")
		synctest.Wait()
		require.Equal(w, []string{"upsert a/1=2"}, x.told(), "at once")
		time.Sleep(6 * time.Millisecond)
		require.Equal(w, []string{"upsert a/1=2"}, x.told(), "after 5 ms again")
		time.Sleep(time.Second)
		require.Len(w, x.told(), 4)
		require.Len(w, gone.list(), 1)
		require.Contains(w, gone.list()[0], "a/1=2: ")
		w.UpdatePod("a/1", "3")
		time.Sleep(time.Second)
		require.Len(w, x.told(), 6, "what was given up is tried again once it has changed")
	})
}

// What was to be tried again is not, once a newer event has had it done.
func TestARetryIsNotMadeInVain(t *testing.T) {
	bubble(t, func(w *world) {
		w.create("a/1")
		x := target{before: refusing(1, "upsert")}
		defer start(&controller.Controller{Resource: x.of(w.shared()), RateLimiter: slowly(time.Hour)})()
		synctest.Wait()
		w.UpdatePod("a/1", "2")
		time.Sleep(3 * time.Hour)
		require.Equal(w, []string{"upsert a/1=1", "upsert a/1=2"}, x.told())
	})
}

// S4-08: a panic that the process survives is a failure: the item is not lost, and in the
// end given up.
func TestAPanicIsAFailure(t *testing.T) {
	harness.SurvivePanics(t)
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		w.create("a/1", "a/2")
		survived := refusing(2, "upsert a/1", "delete a/1")
		x := &target{before: func(call string) error {
			if call == "upsert a/2=1" || survived(call) != nil {
				panic("ouch")
			}
			return nil
		}}
		var gone givenUp
		defer start(&controller.Controller{Resource: of(x), OnGiveUp: gone.add})()
		time.Sleep(time.Minute)
		require.Equal(w, map[string]string{"a/1": "1"}, x.has())
		require.Equal(w, []string{`a/2=1: Upsert "a/2", attempt 6: panic: ouch`}, gone.list())
		var panicked *informer.PanicError
		require.True(w, slices.ContainsFunc(w.reported(), func(err error) bool { return errors.As(err, &panicked) }))
		require.Equal(w, "ouch", panicked.Value)

		survived = refusing(2, "delete a/1")
		w.DeletePods("a/1")
		time.Sleep(time.Minute)
		require.Empty(w, x.has())
	})
}

// MaxRetries decide when a call is given up, and not MaxAttempts of an informer, nor how often an
// informer lets a handler panic.
func TestMaxRetriesDecide(t *testing.T) {
	harness.SurvivePanics(t)
	test := func(w *world, resource func(x *target) controller.Resource) {
		w.create("a/1", "a/2")
		panicking, failing := refusing(10, "upsert a/1"), refusing(10, "delete a/1")
		x := &target{before: func(call string) error {
			if err := panicking(call); err != nil {
				panic(err)
			}
			return failing(call)
		}}
		var gone givenUp
		defer start(&controller.Controller{Resource: resource(x), MaxRetries: -1, OnGiveUp: gone.add})()
		requireSame := func() {
			w.Helper()
			for range 30 { // other calls succeed meanwhile
				time.Sleep(20 * time.Second)
				w.DeletePods("a/2")
				w.create("a/2")
			}
			time.Sleep(time.Minute)
			require.Equal(w, w.has(), x.has())
			require.Empty(w, gone.list())
		}
		requireSame()
		w.DeletePods("a/1")
		requireSame()
	}
	sources(t, func(_ *testing.T, w *world, of func(*target) controller.Resource) { test(w, of) })
	bubble(t, func(w *world) {
		test(w, func(x *target) controller.Resource { return w.storeless(x, informer.InformerConfig{MaxAttempts: 3}) })
	})
	bubble(t, func(w *world) {
		test(w, func(x *target) controller.Resource { return w.handler(x, informer.HandlerConfig{MaxAttempts: 3}) })
	})
}

// A panic of the hook is reported, and the workers go on.
func TestAPanicOfTheHook(t *testing.T) {
	harness.SurvivePanics(t)
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		w.create("a/1", "a/2")
		x := &target{before: refusing(-1, "upsert a/1")}
		hook := func(controller.Event, error) { panic("ouch") }
		defer start(&controller.Controller{Resource: of(x), OnGiveUp: hook})()
		time.Sleep(time.Minute)
		w.UpdatePod("a/2", "2")
		time.Sleep(time.Minute)
		require.Equal(w, map[string]string{"a/2": "2"}, x.has())
	})
}

// By default a panic ends the process: here, one of its own.
func TestAPanicEndsTheProcess(t *testing.T) {
	if os.Getenv("CONTROLLER_CRASH") != "" {
		sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
			w.create("a/1")
			x := &target{before: func(string) error { panic("ouch") }}
			defer start(&controller.Controller{Resource: of(x)})()
			time.Sleep(time.Minute)
		})
		return
	}
	for _, source := range []string{"shared", "storeless"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestAPanicEndsTheProcess$/^"+source+"$", "-test.timeout", "60s")
		cmd.Env = append(os.Environ(), "CONTROLLER_CRASH=1")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s", out)
		require.Contains(t, string(out), "panic: ouch")
	}
}

// A call that ends its goroutine, as a failed assertion does, holds nothing up.
func TestACallThatEndsItsGoroutine(t *testing.T) {
	sources(t, func(t *testing.T, w *world, of func(*target) controller.Resource) {
		w.create("a/1", "a/2")
		x := &target{before: func(call string) error {
			if strings.HasPrefix(call, "upsert a/1") {
				runtime.Goexit()
			}
			return nil
		}}
		stop := start(&controller.Controller{Resource: of(x)})
		time.Sleep(time.Minute)
		require.Equal(w, map[string]string{"a/2": "1"}, x.has())
		w.UpdatePod("a/1", "2")
		w.UpdatePod("a/2", "2")
		time.Sleep(time.Minute)
		require.Equal(w, map[string]string{"a/2": "2"}, x.has())
		stop()
	})
}

// sources runs a test with a Resource of each kind.
func sources(t *testing.T, test func(t *testing.T, w *world, of func(*target) controller.Resource)) {
	t.Run("shared", func(t *testing.T) {
		bubble(t, func(w *world) {
			test(w.T, w, func(x *target) controller.Resource { return x.of(w.shared()) })
		})
	})
	t.Run("storeless", func(t *testing.T) {
		bubble(t, func(w *world) {
			test(w.T, w, func(x *target) controller.Resource { return w.storeless(x, informer.InformerConfig{}) })
		})
	})
	t.Run("handler", func(t *testing.T) {
		bubble(t, func(w *world) {
			test(w.T, w, func(x *target) controller.Resource { return w.handler(x, informer.HandlerConfig{}) })
		})
	})
}
