package race

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Names says what the names of objects are like.
type Names string

const (
	// PodNames are namespace/deployment-hash-xxxxx, ten pods to a hash.
	PodNames Names = "pods"
	// RandomNames have only their namespace in common.
	RandomNames Names = "random names"
)

// KeyLength is that of every key.
const KeyLength = 44

const namespaceLength = len("team-0000")

// keys are different keys in the order of a list, in one text outside of the heap,
// so that the garbage collector sees, and sets its pace by, what a store has of
// them and nothing else.
type keys string

func (n Names) keys(count int) (keys, error) {
	all := make([]string, count)
	for i := range all {
		namespace := fmt.Sprintf("team-%04d/", i*50/count)
		if n == RandomNames {
			all[i] = namespace + letters(mix(3*i), 12) + letters(mix(3*i+1), 11) + letters(mix(3*i+2), 11)
			continue
		}
		const pods = 10
		set := i / pods
		// The first letter after the last dash tells the pods of a set apart.
		all[i] = fmt.Sprintf("%sdeployment-%06d-%s-%s", namespace, set, letters(mix(set), 10), letters(mix(i)/27*27+uint64(i%pods), 5))
	}
	slices.Sort(all)
	text, err := unix.Mmap(-1, 0, count*KeyLength, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return "", err
	}
	for i, key := range all {
		copy(text[i*KeyLength:], key)
	}
	return keys(unsafe.String(&text[0], len(text))), nil
}

func (k keys) len() int { return len(k) / KeyLength }

func (k keys) at(i int) string { return string(k[i*KeyLength : (i+1)*KeyLength]) }

// near is a key that is not there and begins as one that is: of another pod of
// the same set.
func (k keys) near(i int) string { return k.at(i)[:KeyLength-1] + "a" } // no letter of letters

// object makes the object of a key as a decoder does, with text of its own. Each
// age has a later version.
func (k keys) object(i, age int) *metav1.PartialObjectMetadata {
	key := k.at(i)
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       strings.Clone(key[:namespaceLength]),
			Name:            strings.Clone(key[namespaceLength+1:]),
			UID:             uid(i),
			ResourceVersion: strconv.FormatUint(300_000_000+100_000_000*uint64(age)+mix(i)%100_000_000, 10),
		},
	}
}

// shuffled are the numbers below n in a random order, the same each time.
func shuffled(n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func uid(i int) types.UID {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], mix(i))
	binary.LittleEndian.PutUint64(b[8:], mix(-1-i))
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	text := []byte("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
	hex.Encode(text[0:], b[0:4])
	hex.Encode(text[9:], b[4:6])
	hex.Encode(text[14:], b[6:8])
	hex.Encode(text[19:], b[8:10])
	hex.Encode(text[24:], b[10:16])
	return types.UID(text)
}

// letters are the ones that Kubernetes makes suffixes of.
func letters(x uint64, n int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[x%27]
		x /= 27
	}
	return string(b)
}

// mix is splitmix64's.
func mix(i int) uint64 {
	x := uint64(i) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
