package script

import (
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/rvinformer/informer/informertest/oracle"
)

// asked is what the server was asked for.
type asked struct {
	mu     sync.Mutex
	tokens map[string]struct{} // of the pages of the newest list
	second time.Time           // when the second under way began
	in     int                 // requests in it
	spins  bool                // they were too many: from then on, each waits
}

// mostInASecond is how many requests of an informer in a second are no endless loop. Where no
// time passes, as in a bubble, one would never end.
const mostInASecond = 1000

// note tells the oracle of a request. A further page of a list counts if it is asked for again.
func (a *asked) note(o *oracle.Oracle, r *http.Request) {
	query := r.URL.Query()
	if !a.isNewPage(query) {
		o.Requested(r.URL.Path + "?" + r.URL.RawQuery)
	}
	if a.isTooOften() {
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
}

func (a *asked) isNewPage(query url.Values) bool {
	token := query.Get("continue")
	a.mu.Lock()
	defer a.mu.Unlock()
	if token == "" {
		if !query.Has("watch") { // another list may have the same tokens
			clear(a.tokens)
		}
		return false
	}
	if _, known := a.tokens[token]; known {
		return false
	}
	if a.tokens == nil {
		a.tokens = map[string]struct{}{}
	}
	a.tokens[token] = struct{}{}
	return true
}

func (a *asked) isTooOften() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.second) >= time.Second {
		a.second, a.in = time.Now(), 0
	}
	a.in++
	a.spins = a.spins || a.in > mostInASecond
	return a.spins
}
