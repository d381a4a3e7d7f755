package keytable

import (
	"encoding/binary"
	"strings"
)

// loadAtOnce is how many keys a Loader looks ahead.
const loadAtOnce = 32

// Loader sets many keys of a table, in any order. It takes some at a time and reads
// for all of them what each will need, so that they wait for the memory together.
// The table is complete once Flush was called.
type Loader struct {
	table    *Table
	keys     []byte
	ends     [loadAtOnce]int
	versions [loadAtOnce]Binary
	n        int
}

// NewLoader returns a Loader of t, which others leave alone until Flush.
func NewLoader(t *Table) *Loader { return &Loader{table: t} }

// Set is Table.SetBinary for generation 0.
func (l *Loader) Set(key string, version *Binary) {
	if version.Text != "" || version.UID != "" { // lent, and seldom
		l.Flush()
		l.table.SetBinary(key, version, 0)
		return
	}
	l.keys = append(l.keys, key...)
	l.ends[l.n], l.versions[l.n] = len(l.keys), *version
	if l.n++; l.n == loadAtOnce {
		l.Flush()
	}
}

// Flush sets what is left.
func (l *Loader) Flush() {
	var hashes [loadAtOnce]uint64
	l.touch(&hashes)
	begin := 0
	for i := range l.n {
		l.table.setHashed(hashes[i], Borrowed(l.keys[begin:l.ends[i]]), &l.versions[i], 0)
		begin = l.ends[i]
	}
	l.keys, l.n = l.keys[:0], 0
}

// touch hashes the keys, and reads where they and their stems will be looked for.
//
//go:noinline // see Table.touch
func (l *Loader) touch(hashes *[loadAtOnce]uint64) (sum uint64) {
	t, begin := l.table, 0
	var chains [loadAtOnce]uint32
	for i := range l.n {
		key := Borrowed(l.keys[begin:l.ends[i]])
		begin = l.ends[i]
		hashes[i] = t.hasher.sum(key)
		if t.held == nothing {
			continue
		}
		if s := &t.segments[t.directory[hashes[i]>>(64-t.depth)]]; s.slots > 0 {
			sum ^= binary.LittleEndian.Uint64(t.group(s, s.home(tagOf(hashes[i]))))
		}
		dash := strings.LastIndexByte(key, '-') + 1
		chains[i] = t.stems.first(t.hasher.sum(key[:dash]))
	}
	for _, id := range chains {
		for ; id != 0; id = read24(t.stems.at(id)[stemNext:]) {
			sum++
		}
	}
	return sum
}
