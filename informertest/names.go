package informertest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// names gives new objects their UIDs, and names to those that ask for one.
type names struct {
	mu   sync.Mutex
	dice *rand.Rand // nil: they are random
}

// newNames returns names that depend on the seed alone, and random ones for seed 0.
func newNames(seed uint64) *names {
	if seed == 0 {
		return &names{}
	}
	return &names{dice: rand.New(rand.NewPCG(seed, 1))} // not the stream of the faults, 0
}

// uid returns a UUID of version 4.
func (n *names) uid() types.UID {
	if n.dice == nil {
		return uuid.NewUUID()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	high, low := n.dice.Uint64(), n.dice.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		high>>32, high>>16&0xffff, high&0xfff, 0x8000|low>>48&0x3fff, low&(1<<48-1)))
}

// suffix is what follows a generateName.
func (n *names) suffix() string {
	if n.dice == nil {
		return utilrand.String(5)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprintf("%05x", n.dice.IntN(1<<20))
}
