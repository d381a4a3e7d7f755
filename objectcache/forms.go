package objectcache

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rvinformer/informer/internal/leaf/jsonmap"
	"github.com/rvinformer/informer/internal/leaf/protoobject"
)

// forms give each form of a store a number. There are hardly ever more than two.
type forms struct {
	mu sync.Mutex // held to add
	// list is replaced and never changed.
	list atomic.Pointer[[]*form]
}

func (f *forms) all() []*form {
	if list := f.list.Load(); list != nil {
		return *list
	}
	return nil
}

// number returns the number of a form. It fails if there are too many.
func (f *forms) number(of form) (uint8, error) {
	same := func(known *form) bool { return known.same(of) }
	if n := slices.IndexFunc(f.all(), same); n >= 0 {
		return uint8(n), nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.all()
	if n := slices.IndexFunc(list, same); n >= 0 { // added meanwhile
		return uint8(n), nil
	}
	if len(list) > math.MaxUint8 {
		return 0, fmt.Errorf("is a %v of kind %q in %q: a store has objects of %d types and kinds at most", of.goType, of.kind.Kind, of.kind.APIVersion, math.MaxUint8+1)
	}
	of.decoders, of.siblings = &jsonmap.Pool{}, &protoobject.Pool{}
	longer := append(slices.Clone(list), &of)
	f.list.Store(&longer)
	return uint8(len(list)), nil
}

func (f *forms) get(number uint8) *form { return f.all()[number] }
