package protoobject

import (
	"hash/maphash"
	"reflect"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// A run is the elements of a slice that follow one another in a message. Siblings have many equal
// runs, because their containers have the same variables, mounts and arguments. Elements of a run
// that came before are copied. Only those that point to something are decoded again.

// count returns how many fields with the same tag are at the beginning.
func count(tag uint64, fields []byte) int {
	n, _ := wire.RunOf(tag, fields)
	return n
}

// run decodes a run into a map or a slice, or copies the slice. It returns where the run ends, 0 if
// there is something that it does not expect.
func (d *decoder) run(f *field, slice reflect.Value, tag uint64, b []byte) (end int) {
	if f.do == textMap {
		return d.texts(slice.Addr().Interface().(*map[string]string), nil, tag, b)
	}
	n, end := wire.RunOf(tag, b)
	had := slice.Len()
	slice.Grow(n)
	slice.SetLen(had + n)
	decode := ^uint64(0) // has a bit for each element that is not copied
	var s *slot          // where the run will be remembered
	if had == 0 {
		var known bool
		if s, known = d.runs.find(f, b[:end], n); known {
			reflect.Copy(slice, s.elements)
			if s.own == 0 {
				return end
			}
			// A run in an element may take the slot.
			decode, s = s.own, nil
		}
	}
	own := uint64(0)
	for i, from := 0, 0; i < n; i++ {
		_, _, data, to := wire.FieldAt(b, from)
		if from = to; decode>>min(i, 63)&1 == 0 {
			continue
		}
		pointers := d.pointers
		if element := slice.Index(had + i); f.do == texts {
			element.SetString(d.words.String(data))
		} else if !d.message(f.plan, element, data, true) {
			return 0
		}
		if d.pointers != pointers {
			own |= 1 << i
		}
	}
	if s != nil && own != 1<<n-1 {
		s.put(f, b[:end], slice, own)
	}
	return end
}

// runs remembers runs. A run is remembered when it comes again, so that those which come once push
// none out.
type runs struct {
	seed  maphash.Seed
	slots []slot
}

// slot has a run that came twice.
type slot struct {
	of       *field
	run      string
	elements reflect.Value // those of own are zero
	own      uint64        // has a bit for each element that points to something, because objects share nothing but strings
	asked    uint64        // is the hash of the run that came last and was not found
}

const (
	maxSlots = 64
	// maxElements is the number of bits of slot.own.
	maxElements = 64
	// minRun and maxRun bound the bytes of a run that is remembered. A shorter one is decoded as
	// fast.
	minRun, maxRun = 32, 4096
)

// find reports whether a slot has the run. If none has, it returns the slot for the run, or nil if
// the run should not be remembered.
func (r *runs) find(of *field, run []byte, elements int) (s *slot, known bool) {
	if r == nil || len(run) < minRun || len(run) > maxRun || elements > maxElements {
		return nil, false
	}
	if r.slots == nil {
		r.seed, r.slots = maphash.MakeSeed(), make([]slot, maxSlots)
	}
	// The end is enough for the hash, because all is compared.
	hash := maphash.Bytes(r.seed, run[max(0, len(run)-64):]) + uint64(len(run))
	s = &r.slots[hash%maxSlots]
	if s.of == of && s.run == string(run) {
		return s, true
	}
	if s.asked != hash {
		s.asked = hash
		return nil, false
	}
	return s, false
}

// put remembers a run, and copies its elements.
func (s *slot) put(of *field, run []byte, elements reflect.Value, own uint64) {
	n := elements.Len()
	*s = slot{of: of, run: string(run), own: own, elements: reflect.MakeSlice(of.of, n, n)}
	reflect.Copy(s.elements, elements)
	for i := range n {
		if own>>i&1 != 0 {
			s.elements.Index(i).SetZero()
		}
	}
}
