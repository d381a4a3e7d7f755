// Package claims says which informers are somebody's to run.
//
// A cache.SharedIndexInformer does not bear to be run twice, and tells that it runs only
// once the goroutine that runs it has begun. So who is about to run one, and may be
// overtaken by somebody else, claims it before; and who would run one only if nobody does
// looks whether it is claimed.
package claims

import (
	"reflect"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Identity tells an informer from others. It is comparable.
type Identity any

// IdentityOf returns the identity of an informer: its store, for client-go's typed
// factories return the same informer in a new wrapper each time.
func IdentityOf(informer cache.SharedIndexInformer) Identity {
	store := informer.GetIndexer()
	if store == nil || !reflect.TypeOf(store).Comparable() {
		return &informer // it is on its own
	}
	return store
}

// claimed counts the claims of each informer. There is one table for all, because those
// who share an informer may know nothing of each other.
var claimed = table{of: map[Identity]int{}}

type table struct {
	mu sync.Mutex
	of map[Identity]int
}

// Claim says that the caller runs the informer, or is about to, until Drop.
func Claim(id Identity) {
	claimed.mu.Lock()
	defer claimed.mu.Unlock()
	claimed.of[id]++
}

// Drop takes a Claim back.
func Drop(id Identity) {
	claimed.mu.Lock()
	defer claimed.mu.Unlock()
	if claimed.of[id]--; claimed.of[id] == 0 {
		delete(claimed.of, id)
	}
}

// Claimed reports whether somebody has claimed the informer.
func Claimed(id Identity) bool {
	claimed.mu.Lock()
	defer claimed.mu.Unlock()
	return claimed.of[id] > 0
}
