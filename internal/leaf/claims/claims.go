// Package claims says which informers have an owner that runs them.
//
// A cache.SharedIndexInformer does not bear to be run twice, and tells that it runs only
// once the goroutine that runs it has begun. So a caller that is about to run one, and may
// be overtaken by another, claims it before. A caller that would run one only if no other does
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

// claimed counts the claims of each informer. There is one table for all, because the
// users of an informer may know nothing of each other.
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

// Claimed reports whether the informer is claimed.
func Claimed(id Identity) bool {
	claimed.mu.Lock()
	defer claimed.mu.Unlock()
	return claimed.of[id] > 0
}
