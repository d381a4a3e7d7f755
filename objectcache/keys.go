package objectcache

// keys finds slots by the hash of their key: open addressing over the numbers of slots. A key may
// have two slots, a live one and a staged one.
type keys struct {
	places []uint32 // a power of two of them; 0 is empty
	count  int
}

// maxLoad is the part of the places that may be taken, in eighths.
const maxLoad = 7

// all yields the slots with a hash, and some others.
func (k *keys) all(hash uint32, yield func(n uint32) bool) {
	if k.count == 0 {
		return
	}
	for at := k.home(hash); k.places[at] != 0; at = k.after(at) {
		if !yield(k.places[at]) {
			return
		}
	}
}

func (k *keys) home(hash uint32) int  { return int(hash) & (len(k.places) - 1) }
func (k *keys) after(at int) int      { return (at + 1) & (len(k.places) - 1) }
func (k *keys) distance(a, b int) int { return (b - a) & (len(k.places) - 1) }

// add adds a slot, whose hash is set.
func (k *keys) add(s *slots, n uint32) {
	if (k.count+1)*8 > len(k.places)*maxLoad {
		k.resize(s, max(4, 2*len(k.places)))
	}
	k.place(s.at(n).hash, n)
	k.count++
}

func (k *keys) resize(s *slots, places int) {
	old := k.places
	k.places = make([]uint32, places)
	for _, o := range old {
		if o != 0 {
			k.place(s.at(o).hash, o)
		}
	}
}

// shrink halves the places if an eighth of them is taken.
func (k *keys) shrink(s *slots) {
	if k.sparse() {
		k.resize(s, len(k.places)/2)
	}
}

func (k *keys) sparse() bool { return len(k.places) > pageItems && k.count < len(k.places)/8 }

// moved notes that a slot that was added is at another place.
func (k *keys) moved(hash, from, to uint32) {
	at := k.home(hash)
	for k.places[at] != from {
		at = k.after(at)
	}
	k.places[at] = to
}

func (k *keys) place(hash, n uint32) {
	at := k.home(hash)
	for k.places[at] != 0 {
		at = k.after(at)
	}
	k.places[at] = n
}

// remove removes a slot that was added, and moves up those behind it that would not be found any
// more.
func (k *keys) remove(s *slots, n uint32) {
	at := k.home(s.at(n).hash)
	for k.places[at] != n {
		at = k.after(at)
	}
	for next := k.after(at); k.places[next] != 0; next = k.after(next) {
		home := k.home(s.at(k.places[next]).hash)
		if k.distance(home, next) >= k.distance(at, next) {
			k.places[at] = k.places[next]
			at = next
		}
	}
	k.places[at] = 0
	if k.count--; k.count == 0 {
		k.places = nil
	}
}

func (k *keys) sizeBytes() int64 { return 4 * int64(cap(k.places)) }
