package objectcache

import (
	"strings"
	"unsafe"
)

// names give each text a number, for as long as slots use it. Their zero value is empty.
type names struct {
	numbers map[string]uint32
	list    []name // by number; 0 is none
	unused  []uint32
	bytes   int
}

type name struct {
	text string
	uses uint32
	itemList
}

// use returns the number of text, and counts a use. Text may be lent.
func (n *names) use(text string) uint32 {
	number, ok := n.numbers[text]
	if !ok {
		number = n.create(strings.Clone(text))
	}
	n.list[number].uses++
	return number
}

func (n *names) create(text string) (number uint32) {
	if last := len(n.unused) - 1; last >= 0 {
		number, n.unused = n.unused[last], n.unused[:last]
	} else {
		if n.numbers == nil {
			n.numbers, n.list = map[string]uint32{}, make([]name, 1, 2)
		}
		number = uint32(len(n.list))
		n.list = append(n.list, name{})
	}
	n.list[number] = name{text: text}
	n.numbers[text] = number
	n.bytes += len(text)
	return number
}

// unuse takes a use back. With the last one the number becomes another text's.
func (n *names) unuse(number uint32) {
	of := &n.list[number]
	if of.uses--; of.uses > 0 {
		return
	}
	delete(n.numbers, of.text)
	n.bytes -= len(of.text)
	*of = name{}
	n.unused = append(n.unused, number)
	if len(n.numbers) == 0 {
		*n = names{}
	}
}

// sparse reports whether less than a quarter of the numbers is in use, and they are not few beside
// those that have them.
func (n *names) sparse(having uint32) bool {
	return len(n.list) > pageItems && len(n.list) > 4*len(n.numbers) && int(having) <= 4*len(n.list)
}

// renumber gives the texts numbers without gaps, and returns the new one of each number.
func (n *names) renumber() (to []uint32) {
	to = make([]uint32, len(n.list))
	old := n.list
	n.numbers, n.list, n.unused = make(map[string]uint32, len(n.numbers)), make([]name, 1, len(n.numbers)+1), nil
	for number, of := range old {
		if of.uses > 0 {
			to[number] = uint32(len(n.list))
			n.numbers[of.text] = to[number]
			n.list = append(n.list, of)
		}
	}
	return to
}

// find returns the number of text, 0 if it has none.
func (n *names) find(text string) uint32 { return n.numbers[text] }

// mapEntry is about what an entry of a map from string takes: its key, its value and the room that
// is free.
const mapEntry = 32

func (n *names) sizeBytes() int64 {
	return int64(cap(n.list)*int(unsafe.Sizeof(name{})) + 4*cap(n.unused) + len(n.numbers)*mapEntry + n.bytes)
}
