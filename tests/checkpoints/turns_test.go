package checkpoints_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// Three replicas with one checkpoint take turns. Each has the same informer in all its terms, until it
// is killed. Saves may fail, and some of those are kept all the same. Runs may end before they have
// begun. The handler refuses some objects. In each term, its data is right but for two things: dead
// letters, and objects that the first replica could not save, until that one has led again.
// INFORMER_TORTURE runs n seeds.
func TestReplicasTakeTurns(t *testing.T) {
	from, seeds := harness.EnvInt("INFORMER_TORTURE_FROM", 1), harness.EnvInt("INFORMER_TORTURE", 10)
	for seed := from; seed < from+seeds; seed++ {
		for _, journaled := range []bool{true, false} {
			t.Run(fmt.Sprintf("seed=%d, journal=%v", seed, journaled), func(t *testing.T) {
				harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
					r := &replicas{
						World: w, Dice: harness.Dice{Rand: rand.New(rand.NewPCG(uint64(seed), 1))},
						path: filepath.Join(t.TempDir(), "pods"), journaled: journaled,
					}
					r.refuseAgain(0)
					r.memory.OnSave = fullWhile(&r.full)
					r.handler.Fail = r.refuse
					for range 4 + r.N(8) {
						r.change(r.N(12))
						if r.One(2) {
							w.Compact()
						}
						if r.One(4) {
							r.turnAway(r.N(3))
						}
						r.term(r.N(3))
					}
					r.term(0)
					r.refuseAgain(0)
					stop := r.Run(r.informer(0))
					time.Sleep(time.Minute)
					for _, letter := range r.informers[0].DeadLetters() {
						require.NoError(t, r.informers[0].Redeliver(t.Context(), informer.RedeliverOptions{Keys: []string{letter.Key}}))
					}
					r.RequireState(&r.handler.Recorder)
					require.Empty(t, r.informers[0].DeadLetters())
					stop()
				})
			})
		}
	}
}

// replicas are three processes that write to one place. The saves of the first one may fail.
type replicas struct {
	*harness.World
	harness.Dice
	handler   harness.Batches
	path      string
	journaled bool
	memory    landingCheckpoint
	// full has the saves of memory fail.
	full atomic.Bool
	// refused are the keys that the handler refuses.
	refused atomic.Pointer[map[string]bool]

	informers [3]informer.ResourceVersionInformer
	disks     [3]*disk
	// unsaved tells that the first replica knows what it could not save.
	unsaved bool
}

// term is the time for which a replica leads.
func (r *replicas) term(n int) {
	i := r.informer(n)
	stop := r.Run(i)
	time.Sleep(time.Minute)
	r.change(r.N(8))
	var redelivering sync.WaitGroup
	if r.One(3) {
		o := informer.RedeliverOptions{PerSecond: 1 + r.N(3)}
		redelivering.Go(func() { _ = i.Redeliver(r.T.Context(), o) }) // the end of the term may interrupt it
	}
	time.Sleep(time.Duration(r.N(70)) * time.Second)
	fails, lands := n == 0 && r.One(3), false
	switch {
	case fails:
		r.fail(true)
	case r.One(4):
		lands = true
		r.land(n, true)
	}
	r.change(r.N(8))
	time.Sleep(time.Duration(1+r.N(10)) * time.Second)
	synctest.Wait()
	if n == 0 || !r.unsaved {
		r.requireState(i)
	}
	content := r.read()
	stop()
	redelivering.Wait()
	r.land(n, false)
	switch killed := r.journaled && !fails && !lands && !(n == 0 && r.unsaved) && r.One(4); {
	case fails:
		r.fail(false)
		r.unsaved = true
	case killed: // the last save of stop is as if it had not been
		require.NoError(r.T, os.WriteFile(r.path, content, 0o600))
		r.informers[n] = nil
	case n == 0:
		r.unsaved = false
	}
	r.refuseAgain(r.N(4))
}

// turnAway has a replica run that is no leader any more before it begins, or while it reads.
func (r *replicas) turnAway(n int) {
	i := r.informer(n)
	ctx, cancel := context.WithCancel(r.T.Context())
	defer cancel()
	if r.One(2) {
		cancel()
	}
	loads := func() { cancel() }
	r.disks[n].loads.Store(&loads)
	defer r.disks[n].loads.Store(nil)
	r.memory.OnLoad = func(context.Context) (io.ReadCloser, error) {
		cancel() // and the store does not look at its context
		return nil, harness.ErrPass
	}
	defer func() { r.memory.OnLoad = nil }()
	i.RunWithContext(ctx)
}

// requireState requires that the handler's data is right but for what it refuses and for dead letters.
func (r *replicas) requireState(i informer.ResourceVersionInformer) {
	want, err := r.ResourceVersions(harness.Pods, "")
	require.NoError(r.T, err)
	got := r.handler.State()
	except := maps.Clone(*r.refused.Load())
	for _, letter := range i.DeadLetters() {
		except[letter.Key] = true
	}
	for key := range except {
		delete(want, key)
		delete(got, key)
	}
	require.Equal(r.T, want, got, "without %v; it was told:\n%s", except, strings.Join(r.handler.Events(), "\n"))
}

// refuse is what the handler returns.
func (r *replicas) refuse(batch []string) error {
	var failed informer.FailedEvents
	for n, event := range batch {
		if (*r.refused.Load())[strings.Fields(event)[1]] {
			failed = append(failed, informer.FailedEvent{Index: n, Err: errors.New("refused")})
		}
	}
	if failed == nil {
		return nil
	}
	return failed
}

// refuseAgain chooses up to most keys that the handler refuses from now on.
func (r *replicas) refuseAgain(most int) {
	refused := map[string]bool{}
	for range most {
		refused[fmt.Sprintf("a/pod-%d", r.N(8))] = true
	}
	r.refused.Store(&refused)
}

func (r *replicas) read() []byte {
	content, err := os.ReadFile(r.path)
	if r.journaled {
		require.NoError(r.T, err)
	}
	return content
}

// informer returns that of a process, which begins if it was killed.
func (r *replicas) informer(n int) informer.ResourceVersionInformer {
	if r.informers[n] != nil {
		return r.informers[n]
	}
	r.disks[n] = newDisk(r.path)
	var s informer.CheckpointStore = r.disks[n]
	if !r.journaled {
		s = &r.memory
	}
	r.informers[n] = harness.Follow(r.World, informer.InformerConfig{BatchHandler: &r.handler, MaxAttempts: 3, Checkpoint: s})
	return r.informers[n]
}

// land has all saves of a replica return an error once they are there, or none.
func (r *replicas) land(n int, lands bool) {
	r.disks[n].lands.Store(lands)
	r.memory.lands.Store(lands)
}

// fail has all saves of the first replica fail, or none.
func (r *replicas) fail(fails bool) {
	full := r.One(2)
	r.disks[0].full.Store(fails && full)
	r.disks[0].readOnly.Store(fails && !full)
	r.full.Store(fails)
}

// change creates, updates and deletes objects.
func (r *replicas) change(n int) {
	for range n {
		key := fmt.Sprintf("a/pod-%d", r.N(8))
		versions, err := r.ResourceVersions(harness.Pods, "")
		require.NoError(r.T, err)
		switch _, exists := versions[key]; {
		case !exists:
			r.CreatePods(key)
		case r.One(2):
			r.DeletePods(key)
		default:
			r.UpdatePod(key, fmt.Sprint(r.N(1000)))
		}
		time.Sleep(time.Duration(r.N(1500)) * time.Millisecond)
	}
}
