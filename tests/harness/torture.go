package harness

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

// EnvInt is what an environment variable says: INFORMER_TORTURE how many seeds the tests
// whose names begin with TestTorture run, INFORMER_TORTURE_FROM from which one on.
func EnvInt(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// Dice is a source of random decisions for several goroutines.
type Dice struct {
	mu sync.Mutex
	// Rand is used by one goroutine at a time.
	Rand *rand.Rand
}

// N is a number below most.
func (d *Dice) N(most int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Rand.IntN(most)
}

// One is true one time out of n, and never for 0.
func (d *Dice) One(n int) bool { return n > 0 && d.N(n) == 0 }

// Faults changes the pods of a server, and has answers of it go wrong.
type Faults struct {
	Dice
	World *World

	touching sync.Mutex
	gone     map[string]string // the version of each key's last deletion
}

// Untouched calls look with the version of each key's last deletion, while no pod changes.
func (f *Faults) Untouched(look func(gone map[string]string)) {
	f.touching.Lock()
	defer f.touching.Unlock()
	look(f.gone)
}

// Break ends what was wrong, and has something else go wrong until the server is healed.
func (f *Faults) Break() {
	status := []int{429, 500, 503, 403, 504}[f.N(5)]
	faults := []string{
		fmt.Sprintf("%d odds=2", status), fmt.Sprintf("%d odds=2 retry-after=%d", status, 1+f.N(3)), fmt.Sprintf("cut=%d odds=2", f.N(2000)),
		"close", "watch,watch-list hang", "refuse-watch-list", "ignore-watch-list",
	}
	fault, err := informertest.ParseFault(faults[f.N(len(faults))])
	require.NoError(f.World.T, err)
	f.World.Heal()
	f.World.Inject(fault)
}

// Touch creates, changes, deletes, or deletes and creates again one of 30 pods.
func (f *Faults) Touch() {
	f.touching.Lock()
	defer f.touching.Unlock()
	w, n, how := f.World, f.N(30), f.N(5)
	key := fmt.Sprintf("ns%d/pod-%d", n%3, n)
	if _, err := w.Get(Pods, fmt.Sprintf("ns%d", n%3), fmt.Sprintf("pod-%d", n)); err != nil {
		w.CreatePods(key)
		return
	}
	switch how {
	case 0, 1:
		w.DeletePods(key)
		if f.gone == nil {
			f.gone = map[string]string{}
		}
		f.gone[key] = w.ResourceVersion()
		if how == 1 {
			w.CreatePods(key)
		}
	default:
		w.UpdatePod(key, w.ResourceVersion())
	}
}
