// Package samples makes pods and custom resources for benchmarks and demos, with about the entropy
// of real ones.
//
// A set of objects that were copied from one template would flatter whatever compresses them. Here
// each pod has a UID, container IDs, addresses, a node and times of its own, and each deployment
// has images, digests, variables and labels of its own. The objects are made from a seed and an
// index, the same in each process, and none is kept: a server of a million pods makes each when it
// is asked for.
//
// Objects stand in the order of a list. A namespace has 500 objects of 40 owners, whose sizes
// differ: most own a few objects and some own more than fifty. So 5,000 objects have 400 owners.
//
// An object can be made as it was after any number of updates. An update of a pod restarts one of
// its containers, or flips its readiness: only its status and its resource version change. An
// update of a release changes its status likewise.
package samples

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The objects of a namespace, and their owners.
const (
	PerNamespace       = 500
	OwnersPerNamespace = 40
)

// Teams is the number of values of the label "team". About one object in a hundred has a given one.
const Teams = 100

// Cluster is a made-up cluster. Clusters with equal seeds have equal objects.
type Cluster struct{ Seed uint64 }

// topic separates the random numbers of different things.
type topic uint64

const (
	sizesTopic topic = iota + 1
	deploymentTopic
	podTopic
	updateTopic
	catalogTopic
	releaseTopic
)

// random returns the random numbers of one thing.
func (c Cluster) random(of topic, i int) source {
	return source{rand.New(rand.NewPCG(c.Seed+uint64(of)<<56, uint64(i)))}
}

// Namespace is the name of the namespace of object i.
func Namespace(i int) string { return fmt.Sprintf("tenant-%05d", i/PerNamespace) }

// owner is the place of an object among its siblings.
type owner struct {
	index   int // among all owners
	ordinal int // of the object among those of the owner
}

// ownerOf returns the owner of object i.
func (c Cluster) ownerOf(i int) owner {
	namespace, within := i/PerNamespace, i%PerNamespace
	var weights [OwnersPerNamespace]float64
	r, sum := c.random(sizesTopic, namespace), 0.0
	for k := range weights {
		weights[k] = r.ExpFloat64() * r.ExpFloat64() // skewed: many small ones, some large
		sum += weights[k]
	}
	// The first object of owner k. Each owns at least one.
	start := func(k int) (at int) {
		before := 0.0
		for _, w := range weights[:k] {
			before += w
		}
		return k + int(before/sum*(PerNamespace-OwnersPerNamespace))
	}
	k := 0
	for k+1 < OwnersPerNamespace && start(k+1) <= within {
		k++
	}
	return owner{namespace*OwnersPerNamespace + k, within - start(k)}
}

// source draws what objects are made of.
type source struct{ *rand.Rand }

func (r source) bytes(n int) []byte {
	b := make([]byte, n)
	for k := range b {
		b[k] = byte(r.Uint32())
	}
	return b
}

// hex is a text of n bytes in hexadecimal digits.
func (r source) hex(n int) string { return hex.EncodeToString(r.bytes(n)) }

func (r source) uid() types.UID {
	b := r.bytes(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// text is n letters of an alphabet.
func (r source) text(alphabet string, n int) string {
	b := make([]byte, n)
	for k := range b {
		b[k] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

func (r source) of(words []string) string { return words[r.IntN(len(words))] }

// safe is the alphabet of the names that Kubernetes makes up.
const safe = "bcdfghjklmnpqrstvwxz2456789"

// suffix is the end of the name of the object with this ordinal. No two siblings have the same.
func suffix(salt, ordinal int) string {
	const all = 27 * 27 * 27 * 27 * 27
	b, mixed := make([]byte, 5), (salt+ordinal*7_368_787)%all // a prime
	for k := range b {
		b[k] = safe[mixed%27]
		mixed /= 27
	}
	return string(b)
}

// epoch is before all that happened.
var epoch = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

// version is the resource version of object i after an update. The updates of an object are a week
// of the cluster apart.
func version(i, revision int) string {
	return fmt.Sprint(1_000_000_000 + 3*i + revision*100_000_003)
}
