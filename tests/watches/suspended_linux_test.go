package watches_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// claim says that all writes before a moment are acknowledged, which are those up to a version.
type claim struct {
	current time.Time
	version int
}

// A process that is suspended while its server goes on does not say, when it is continued, that it
// has what was written meanwhile.
func TestCurrentAsOfDoesNotCountSuspension(t *testing.T) {
	w := &harness.World{T: t, Server: informertest.NewServer(informertest.Options{})}
	defer w.Close()
	w.CreatePods(harness.Keys(3)...)
	harness.PassServer(t, w.Config())
	p := harness.StartProcess(t, "claims", "")
	claims := make(chan claim, 10_000)
	go func() {
		defer close(claims)
		for {
			var nanoseconds int64
			var c claim
			if n, _ := fmt.Sscan(p.Line(), &nanoseconds, &c.version); n < 2 {
				return
			}
			c.current = time.Unix(0, nanoseconds)
			claims <- c
		}
	}()
	<-claims                            // it is synced
	time.Sleep(1500 * time.Millisecond) // and its watch has caught up

	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGSTOP))
	var writes []claim
	began := time.Now()
	for n := 0; time.Since(began) < 2500*time.Millisecond; n++ {
		w.CreatePods(fmt.Sprintf("suspended/%d", n))
		version, err := strconv.Atoi(w.ResourceVersion())
		require.NoError(t, err)
		writes = append(writes, claim{time.Now(), version})
		time.Sleep(5 * time.Millisecond)
	}
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGCONT))
	last := writes[len(writes)-1]
	deadline := time.AfterFunc(time.Minute, p.Kill)
	defer deadline.Stop()
	complete := false
	for c := range claims {
		for _, write := range writes {
			// What the server tells its watches takes a moment to come.
			if write.current.Add(time.Second).Before(c.current) && write.version > c.version {
				t.Fatalf("current as of %v, with all up to version %d, and version %d was written %v before",
					c.current, c.version, write.version, c.current.Sub(write.current))
			}
		}
		if complete = c.version >= last.version; complete {
			break
		}
	}
	require.True(t, complete, "the writes did not come")
	p.Kill()
	p.Wait()
	for range claims {
	}
}

// The process prints, each time that it changes, since when it says that it is current, and the
// version up to which everything is acknowledged.
var _ = harness.Role("claims", func(t require.TestingT, _ string) {
	config := harness.PassedServer()
	config.ContentType = runtime.ContentTypeJSON
	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
		ListerWatcher: harness.ListerOf(t, config),
		ListMode:      informer.ListModePaged,
		Handler:       informer.ResourceEventHandlerFuncs{AddFunc: func(interface{}) { time.Sleep(2 * time.Millisecond) }},
	})
	var running sync.WaitGroup
	running.Go(func() { i.RunWithContext(context.Background()) })
	for before := ""; ; time.Sleep(time.Millisecond) {
		current := i.Status().CurrentAsOf // before the version, which only grows
		version := i.Status().ResourceVersion
		if line := fmt.Sprint(current.UnixNano(), " ", version); !current.IsZero() && version != "" && line != before {
			fmt.Println(line)
			before = line
		}
	}
})
