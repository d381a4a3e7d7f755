package audit

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// rest has differences by hashes, in 16 bytes each. Nil has none.
type rest struct {
	seed  maphash.Seed
	marks []mark
}

// mark is a key that differs, and what the informer had of it, which is the zero value for nothing.
type mark struct{ key, own uint64 }

func (r *rest) add(key string, own keytable.Version) {
	r.marks = append(r.marks, mark{maphash.String(r.seed, key), maphash.Comparable(r.seed, own)})
}

// repaired returns how many of them copy does not have any more.
func (r *rest) repaired(copy Copy) int {
	if r == nil {
		return 0
	}
	slices.SortFunc(r.marks, func(a, b mark) int { return cmp.Compare(a.key, b.key) })
	// now has what copy has of them.
	now := make([]keytable.Version, len(r.marks))
	for cursor := keytable.Cursor(0); ; {
		at := map[int]string{}
		cursor = copy.LendFrom(cursor, walkedAtOnce, func(key string, _ *keytable.Binary) {
			hash := maphash.String(r.seed, key)
			if i, differed := slices.BinarySearchFunc(r.marks, hash, func(m mark, hash uint64) int { return cmp.Compare(m.key, hash) }); differed {
				at[i] = strings.Clone(key)
			}
		})
		for i, key := range at { // visit may not use copy
			now[i], _ = copy.Get(key)
		}
		if cursor == 0 {
			break
		}
	}
	n := 0
	for i, m := range r.marks {
		if maphash.Comparable(r.seed, now[i]) != m.own {
			n++
		}
	}
	return n
}
