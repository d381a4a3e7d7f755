package tests_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
)

// number is what an environment variable says: INFORMER_TORTURE how many seeds the tests
// whose names begin with TestTorture run, INFORMER_TORTURE_FROM from which one on.
func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// dice is a source of random decisions for several goroutines.
type dice struct {
	mu   sync.Mutex
	rand *rand.Rand
}

// n is a number below most.
func (d *dice) n(most int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rand.IntN(most)
}

// one is true one time out of n, and never for 0.
func (d *dice) one(n int) bool { return n > 0 && d.n(n) == 0 }

// faults is what stands between server and informer.
type faults struct {
	dice
	world    *world
	touching sync.Mutex
	gone     map[string]string // the version of each key's last deletion

	state sync.Mutex
	kind  string
}

func (f *faults) become(kind string) {
	f.state.Lock()
	defer f.state.Unlock()
	f.kind = kind
}

func (f *faults) now() string {
	f.state.Lock()
	defer f.state.Unlock()
	return f.kind
}

var statuses = []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusForbidden, http.StatusGatewayTimeout}

func (f *faults) wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind := f.now(); {
		case kind == "refuse" && !f.one(4):
			if f.one(2) {
				w.Header().Set("Retry-After", strconv.Itoa(1+f.n(3)))
			}
			http.Error(w, "refused", statuses[f.n(len(statuses))])
			return
		case kind == "cut" && f.one(2):
			w = &cutting{ResponseWriter: w, left: f.n(2000)}
		case kind == "close" && isWatch(r):
			return
		case kind == "silent" && isWatch(r):
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		case kind == "refuse watch-lists" && isWatchList(r):
			http.Error(w, "sendInitialEvents is forbidden", http.StatusUnprocessableEntity)
			return
		case kind == "ignore watch-lists" && isWatchList(r):
			r = ignoring(r, "sendInitialEvents", "resourceVersionMatch")
		case kind == "compact" && f.one(2):
			f.touch()
			f.world.Compact()
		}
		server.ServeHTTP(w, r)
	})
}

// touch creates, changes, deletes, or deletes and creates again one of 30 pods.
func (f *faults) touch() {
	f.touching.Lock()
	defer f.touching.Unlock()
	w, n, how := f.world, f.n(30), f.n(5)
	key := fmt.Sprintf("ns%d/pod-%d", n%3, n)
	if _, err := w.Get(pods, fmt.Sprintf("ns%d", n%3), fmt.Sprintf("pod-%d", n)); err != nil {
		w.create(key)
		return
	}
	switch how {
	case 0, 1:
		w.remove(key)
		f.gone[key] = w.ResourceVersion()
		if how == 1 {
			w.create(key)
		}
	default:
		w.update(key, w.ResourceVersion())
	}
}
