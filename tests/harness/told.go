package harness

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// Told answers the lists of pods with items that a test sets, in JSON, and their watches with events
// that it sends. It does not know watch-lists.
type Told struct {
	mu     sync.Mutex
	rv     int
	bare   bool
	items  []string
	events chan string
	lists  int
	asked  []string
}

// List sets the items of lists from now on, which are of a newer version than before.
func (a *Told) List(items ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rv += 1000
	a.items = items
}

// Bare has lists without a resource version from now on.
func (a *Told) Bare() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bare = true
}

// Lists returns how many lists were answered.
func (a *Told) Lists() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lists
}

// Asked returns the label selectors of the requests so far, each once.
func (a *Told) Asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// Send sends an event, an ADDED, MODIFIED or DELETED, to the watch that is open.
func (a *Told) Send(event, object string) {
	a.channel() <- fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"Pod",%s}`+"\n", event, object[1:])
	synctest.Wait()
}

// Relist ends the watch that is open, and waits until the list that follows was read.
func (a *Told) Relist() {
	a.channel() <- `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}` + "\n"
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (a *Told) channel() chan string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.events == nil {
		a.events = make(chan string)
	}
	return a.events
}

// Wrap puts a before a server.
func (a *Told) Wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api/v1/pods":
			server.ServeHTTP(w, r)
		case IsWatchList(r):
			FailWith(w, http.StatusBadRequest, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400}`)
		case IsWatch(r):
			a.watch(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(a.list(r)))
		}
	})
}

func (a *Told) list(r *http.Request) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lists++
	if s := r.URL.Query().Get("labelSelector"); len(a.asked) == 0 || a.asked[len(a.asked)-1] != s {
		a.asked = append(a.asked, s)
	}
	version := fmt.Sprintf(`"resourceVersion":"%d"`, a.rv)
	if a.bare {
		version = ""
	}
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{%s},"items":[%s]}`, version, strings.Join(a.items, ","))
}

func (a *Told) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case event := <-a.channel():
			_, _ = w.Write([]byte(event))
			_ = http.NewResponseController(w).Flush()
			if strings.Contains(event, `"ERROR"`) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// ItemJSON is an object of a list in JSON, in the namespace d.
func ItemJSON(name, uid string, rv int, labels string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"d","name":%q,"uid":%q,"resourceVersion":"%d","labels":{%s}}}`, name, uid, rv, labels)
}
