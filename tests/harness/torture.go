package harness

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
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

// Faults is what stands between server and informer, and what changes the pods of the server.
type Faults struct {
	Dice
	World *World

	touching sync.Mutex
	gone     map[string]string // the version of each key's last deletion

	state sync.Mutex
	kind  string
}

// Untouched calls look with the version of each key's last deletion, while no pod changes.
func (f *Faults) Untouched(look func(gone map[string]string)) {
	f.touching.Lock()
	defer f.touching.Unlock()
	look(f.gone)
}

// Become sets what is wrong from now on, one of the cases of Wrap. Any other word is nothing.
func (f *Faults) Become(kind string) {
	f.state.Lock()
	defer f.state.Unlock()
	f.kind = kind
}

func (f *Faults) now() string {
	f.state.Lock()
	defer f.state.Unlock()
	return f.kind
}

var statuses = []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusForbidden, http.StatusGatewayTimeout}

// Wrap puts f before a server.
func (f *Faults) Wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind := f.now(); {
		case kind == "refuse" && !f.One(4):
			if f.One(2) {
				w.Header().Set("Retry-After", strconv.Itoa(1+f.N(3)))
			}
			http.Error(w, "refused", statuses[f.N(len(statuses))])
			return
		case kind == "cut" && f.One(2):
			w = &Cutting{ResponseWriter: w, Left: f.N(2000)}
		case kind == "close" && IsWatch(r):
			return
		case kind == "silent" && IsWatch(r):
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		case kind == "refuse watch-lists" && IsWatchList(r):
			http.Error(w, "sendInitialEvents is forbidden", http.StatusUnprocessableEntity)
			return
		case kind == "ignore watch-lists" && IsWatchList(r):
			r = Ignoring(r, "sendInitialEvents", "resourceVersionMatch")
		case kind == "compact" && f.One(2):
			f.Touch()
			f.World.Compact()
		}
		server.ServeHTTP(w, r)
	})
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
