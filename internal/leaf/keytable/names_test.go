package keytable_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// names makes keys for tests and benchmarks, the same ones each time.
type names func(i int) string

// mix spreads i.
func mix(i int) uint64 {
	x := uint64(i) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
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

// pods are keys of 44 bytes, namespace/deployment-replicasethash-xxxxx, with so
// many pods to a replica set, up to 27, and 50 namespaces. No two are equal.
func pods(perReplicaSet int) names {
	return func(i int) string {
		set := i / perReplicaSet
		return fmt.Sprintf("team-%04d/service-name-%06d-%s-%s", set%50, set, letters(mix(set), 10), letters(mix(i)/27*27+uint64(i%perReplicaSet), 5))
	}
}

// random are keys of 44 bytes that have no more in common than their namespace.
func random(i int) string {
	r := rand.NewPCG(uint64(i), 1)
	return fmt.Sprintf("team-%04d/%s%s%s", i%50, letters(r.Uint64(), 12), letters(r.Uint64(), 11), letters(r.Uint64(), 11))
}

// uuids are keys of 44 bytes, too, whose names have dashes that say nothing.
func uuids(i int) string {
	return fmt.Sprintf("team-%02d/%s", i%50, uid(i))
}

func uid(i int) types.UID {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], mix(i))
	binary.LittleEndian.PutUint64(b[8:], mix(-1-i))
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// versionOf is a version as a server has it that has made some hundred million.
func versionOf(i int) keytable.Version {
	return keytable.Version{ResourceVersion: fmt.Sprint(300_000_000 + mix(i)%100_000_000), UID: uid(i)}
}
