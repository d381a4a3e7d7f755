package claims

import (
	"reflect"
	"sync"
)

// taken has the owner of each thing. There is one for all, because the users of a store may know
// nothing of each other.
var taken sync.Map

// Take makes owner the only one to use thing until it calls release. If another one has taken
// it, ok is false, and other is that one. Anybody may take what cannot be compared.
func Take(thing, owner any) (release func(), other any, ok bool) {
	if !reflect.ValueOf(thing).Comparable() {
		return func() {}, nil, true
	}
	if other, loaded := taken.LoadOrStore(thing, owner); loaded {
		return nil, other, false
	}
	return func() { taken.Delete(thing) }, nil, true
}
