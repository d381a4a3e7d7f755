package shards

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"slices"
)

// load is a unit as the plan sees it.
type load struct {
	text   string
	weight int64 // at least 1
}

// nobody is the place of a member that is none.
const nobody = -1

// share returns the place in members of the owner of each unit; nobody if there are no members. Its
// result depends on the sets alone, not on their order or on the present owners.
//
// A unit goes to the member with the highest score for it that has room. Heavier units choose
// first, and among equal ones the one with the highest score. A member has room up to a quarter
// above the average. A unit for which no member has room goes to the one with the least load. So no
// member has more than a quarter above the average, or the average and its heaviest unit.
func share(members []string, units []load) []int {
	owners := make([]int, len(units))
	for i := range owners {
		owners[i] = nobody
	}
	if len(members) == 0 {
		return owners
	}
	s := sharing{members: make([]uint64, len(members)), units: make([]uint64, len(units)), loads: make([]int64, len(members))}
	for i, m := range members {
		s.members[i] = mix(hash(baseOf(m)))
	}
	var total, heaviest int64
	for i, u := range units {
		s.units[i] = hash(u.text)
		total += u.weight
		heaviest = max(heaviest, u.weight)
	}
	s.room = max(heaviest, quarterAbove(total, int64(len(members))))

	order := make([]int, len(units))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(units[b].weight, units[a].weight) })
	for len(order) > 0 {
		weight := units[order[0]].weight
		n := slices.IndexFunc(order, func(i int) bool { return units[i].weight != weight })
		if n < 0 {
			n = len(order)
		}
		s.place(order[:n], weight, owners)
		order = order[n:]
	}
	return owners
}

// quarterAbove is 1.25 times the average, rounded up.
func quarterAbove(total, n int64) int64 { return (5*total + 4*n - 1) / (4 * n) }

// sharing is one computation of a plan.
type sharing struct {
	members, units []uint64 // hashes
	loads          []int64  // of the members
	room           int64
}

// place finds an owner for each unit of one weight.
func (s *sharing) place(units []int, weight int64, owners []int) {
	var wishes wishes
	for _, u := range units {
		wishes = append(wishes, s.best(u))
	}
	heap.Init(&wishes)
	for len(wishes) > 0 {
		w := wishes[0]
		if w.member == nobody {
			w.member = s.least(w.unit)
		} else if s.loads[w.member]+weight > s.room {
			wishes[0] = s.next(w)
			heap.Fix(&wishes, 0)
			continue
		}
		owners[w.unit] = w.member
		s.loads[w.member] += weight
		heap.Pop(&wishes)
	}
}

// wish is a unit and the member that it goes to if there is room.
type wish struct {
	unit, member int
	hash, score  uint64 // of the unit; zero for nobody
}

func (s *sharing) score(unit, member int) uint64 { return mix(s.units[unit] + s.members[member]) }

// best is the first wish of a unit.
func (s *sharing) best(unit int) wish {
	w := wish{unit: unit, member: nobody, hash: s.units[unit]}
	for m := range s.members {
		if score := s.score(unit, m); w.member == nobody || score > w.score {
			w.member, w.score = m, score
		}
	}
	return w
}

// next is the wish after w. Of members with equal scores the first comes first.
func (s *sharing) next(w wish) wish {
	next := wish{unit: w.unit, member: nobody, hash: w.hash}
	for m := range s.members {
		score := s.score(w.unit, m)
		if score > w.score || score == w.score && m <= w.member {
			continue
		}
		if next.member == nobody || score > next.score {
			next.member, next.score = m, score
		}
	}
	return next
}

// least is the member with the least load; of several, the one with the highest score for the unit.
func (s *sharing) least(unit int) int {
	best := 0
	for m, load := range s.loads {
		if load < s.loads[best] || load == s.loads[best] && s.score(unit, m) > s.score(unit, best) {
			best = m
		}
	}
	return best
}

// wishes is a heap with the highest score first. Those that no member has room for are last.
type wishes []wish

func (w wishes) Len() int { return len(w) }

func (w wishes) Less(i, j int) bool {
	a, b := w[i], w[j]
	if (a.member == nobody) != (b.member == nobody) {
		return b.member == nobody
	}
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.hash, b.hash)) < 0
}

func (w wishes) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

func (w *wishes) Push(x any) { *w = append(*w, x.(wish)) }

func (w *wishes) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}

// mix spreads each bit of x over all bits (the finalizer of splitmix64), which FNV does not do for
// similar texts.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
