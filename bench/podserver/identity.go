package podserver

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// field is a part of a pod that differs from pod to pod. Each has a fixed width,
// so that an encoding of one pod becomes that of another by overwriting it.
type field int

const (
	namespaceField field = iota
	replicaSetField
	suffixField
	uidField
	versionField
	fields
)

// placeholders stand for the fields in the pod that the templates are made of.
// None occurs in it by chance.
var placeholders = [fields]string{
	namespaceField:  "namespace-ZZ",
	replicaSetField: "service-ZZZZZZZ-zzzzzzzzz",
	suffixField:     "ZzZzZ",
	uidField:        "zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz",
	versionField:    "9753186420",
}

const (
	namespaces = 31
	replicas   = 10

	// firstVersion is the resource version of the oldest pod, and listVersion that
	// of a list before anything changed; changes come after. All have ten digits.
	firstVersion = 1_000_000_000
	listVersion  = 5_000_000_000
)

// identity holds the fields of one pod.
type identity [fields][]byte

func newIdentity() *identity {
	var id identity
	for f, placeholder := range placeholders {
		id[f] = []byte(placeholder)
	}
	return &id
}

// set makes id that of pod i of n, as the server lists it: their keys sort by i.
func (id *identity) set(i, n int) {
	digits(id[namespaceField][10:12], i*namespaces/n)
	set := i / replicas
	digits(id[replicaSetField][8:15], set)
	hexDigits(id[replicaSetField][16:25], scramble(uint64(set)))
	suffix(id[suffixField], i)
	var random [16]byte
	for k, half := range []uint64{scramble(uint64(2*i + 1)), scramble(uint64(2*i) + 1<<40)} {
		for b := range 8 {
			random[8*k+b] = byte(half >> (8 * b))
		}
	}
	random[6], random[8] = random[6]&0x0f|0x40, random[8]&0x3f|0x80
	uid := id[uidField]
	hex.Encode(uid[0:], random[0:4])
	hex.Encode(uid[9:], random[4:6])
	hex.Encode(uid[14:], random[6:8])
	hex.Encode(uid[19:], random[8:10])
	hex.Encode(uid[24:], random[10:16])
	id.setVersion(firstVersion + 3*i)
}

func (id *identity) setVersion(version int) { digits(id[versionField], version) }

// digits writes number in decimal, right-aligned.
func digits(into []byte, number int) {
	for k := len(into) - 1; k >= 0; k-- {
		into[k] = '0' + byte(number%10)
		number /= 10
	}
}

func hexDigits(into []byte, number uint64) {
	for k := range into {
		into[k] = "0123456789abcdef"[number&15]
		number >>= 4
	}
}

// suffix writes the end of pod i's name, in Kubernetes' alphabet for it. Those of one
// replica set sort by i.
func suffix(into []byte, i int) {
	const alphabet = "2456789bcdfghjklmnpqrstvwxz"
	const span = 27 * 27 * 27 * 27 * 27 / replicas
	mixed := i%replicas*span + i/replicas*7_368_787%span
	for k := len(into) - 1; k >= 0; k-- {
		into[k] = alphabet[mixed%27]
		mixed /= 27
	}
}

// scramble is splitmix64's.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// MaxPods is how many pods a server can have: their fields have fixed widths.
const MaxPods = 10_000_000

func (o Options) check() error {
	if o.Pods < 0 || o.Pods > MaxPods {
		return fmt.Errorf("%d pods: there can be 0 to %d", o.Pods, MaxPods)
	}
	if o.Changed < 0 || o.Changed > o.Pods {
		return fmt.Errorf("%d changed of %d pods", o.Changed, o.Pods)
	}
	if most := 4_000_000_000; o.Events < 0 || o.Events > most {
		return fmt.Errorf("%d events: there can be 0 to %d", o.Events, most)
	}
	if o.Samples && (o.Changed > 0 || o.Events > 0) {
		return errors.New("samples do not change")
	}
	if o.Sharded && (o.Samples || o.Changed > 0 || o.Events > 0) {
		return errors.New("a server of shards has no samples and no changes")
	}
	if o.Events > 0 && o.Pods == 0 {
		return fmt.Errorf("%d events about no pods", o.Events)
	}
	return nil
}

// ListVersion is the resource version of every list, and LastVersion that of the
// last event.
func (o Options) ListVersion() string { return strconv.Itoa(listVersion + o.Changed) }
func (o Options) LastVersion() string { return strconv.Itoa(listVersion + o.Changed + o.Events) }

// identify makes id that of the pod at place i of a list.
func (o Options) identify(id *identity, i int) {
	i = o.listedAt(i)
	id.set(i, o.Pods)
	if o.Changed == 0 {
		return
	}
	if step := o.Pods / o.Changed; i%step == 0 && i/step < o.Changed {
		id.setVersion(listVersion + 1 + i/step)
	}
}

// identifyChange makes id that of the pod that the n-th change was of, then. The
// first are those that lists have.
func (o Options) identifyChange(id *identity, n int) {
	if n < o.Changed {
		id.set(n*(o.Pods/o.Changed), o.Pods)
	} else {
		id.set((n-o.Changed)%o.Pods, o.Pods)
	}
	id.setVersion(listVersion + 1 + n)
}
