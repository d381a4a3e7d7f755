package objectcache

// links are the neighbours of an item in its list, 0 where there is none.
type links struct{ next, prev uint32 }

// linked has the items of lists, by number.
type linked interface {
	linksOf(n uint32) *links
}

// itemList is a list of items, in the order in which they were added. An item is in one list at
// most.
type itemList struct{ first, last, count uint32 }

func (l *itemList) add(of linked, n uint32) {
	*of.linksOf(n) = links{prev: l.last}
	if l.last != 0 {
		of.linksOf(l.last).next = n
	} else {
		l.first = n
	}
	l.last = n
	l.count++
}

func (l *itemList) remove(of linked, n uint32) {
	at := of.linksOf(n)
	l.join(of, *at, at.next, at.prev)
	l.count--
}

// take removes the item that was added last, and returns its number; 0 if there is none.
func (l *itemList) take(of linked) uint32 {
	n := l.last
	if n != 0 {
		l.remove(of, n)
	}
	return n
}

// moved notes that an item of the list has another number.
func (l *itemList) moved(of linked, to uint32) { l.join(of, *of.linksOf(to), to, to) }

// join says to the neighbours of an item which one is next, and which is the one before.
func (l *itemList) join(of linked, at links, next, prev uint32) {
	if at.prev != 0 {
		of.linksOf(at.prev).next = next
	} else {
		l.first = next
	}
	if at.next != 0 {
		of.linksOf(at.next).prev = prev
	} else {
		l.last = prev
	}
}
