package checkpoints_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// Two replicas with one checkpoint take turns, each with the same informer in all its terms until it
// is killed. The handler's data is right in each term, but for objects that only a replica knows which
// could not save them: it is right again when that one has led again. INFORMER_TORTURE runs n seeds.
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
					r.memory.OnSave = func(context.Context, int) error {
						if r.full.Load() {
							return errors.New("full")
						}
						return nil
					}
					for range 4 + r.N(8) {
						r.change(r.N(12))
						if r.One(2) {
							w.Compact()
						}
						r.term(r.N(2))
					}
					r.term(0)
				})
			})
		}
	}
}

// replicas are two processes that write to one place. The saves of the first one may fail.
type replicas struct {
	*harness.World
	harness.Dice
	handler   harness.Recorder
	path      string
	journaled bool
	memory    harness.MemoryCheckpoint
	// full has the saves of memory fail.
	full atomic.Bool

	informers [2]informer.ResourceVersionInformer
	disks     [2]*disk
	// unsaved tells that the first replica knows what it could not save.
	unsaved bool
}

// term is the time for which a replica leads.
func (r *replicas) term(n int) {
	if r.informers[n] == nil {
		r.start(n)
	}
	stop := r.Run(r.informers[n])
	time.Sleep(time.Minute)
	r.change(r.N(8))
	time.Sleep(time.Duration(r.N(70)) * time.Second)
	fails := n == 0 && r.One(3)
	if fails {
		r.fail(true)
	}
	r.change(r.N(8))
	time.Sleep(time.Duration(1+r.N(10)) * time.Second)
	synctest.Wait()
	if n == 0 || !r.unsaved {
		r.RequireState(&r.handler)
	}
	content := r.read()
	stop()
	switch killed := r.journaled && !fails && !(n == 0 && r.unsaved) && r.One(4); {
	case fails:
		r.fail(false)
		r.unsaved = true
	case killed: // the last save of stop is as if it had not been
		require.NoError(r.T, os.WriteFile(r.path, content, 0o600))
		r.informers[n] = nil
	case n == 0:
		r.unsaved = false
	}
}

func (r *replicas) read() []byte {
	content, err := os.ReadFile(r.path)
	if r.journaled {
		require.NoError(r.T, err)
	}
	return content
}

// start begins a process.
func (r *replicas) start(n int) {
	r.disks[n] = newDisk(r.path)
	var s informer.CheckpointStore = r.disks[n]
	if !r.journaled {
		s = &r.memory
	}
	r.informers[n] = harness.Follow(r.World, informer.InformerConfig{Handler: &r.handler, Checkpoint: s})
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
