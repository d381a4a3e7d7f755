package jsonmap

// Bounds of the places that are expected: places in all, and members of one object, or elements of
// one array, that have places of their own.
const (
	maxPlaces   = 1024
	maxChildren = 32
	// maxRefused is how often a place may be missing, because there are too many, until all are
	// forgotten: the objects have changed, or the first ones were unlike the others.
	maxRefused = 4 * maxPlaces
	// minObjects is for how many objects places are kept at least: to learn them again costs more
	// than they save in a few.
	minObjects = 128
	// maxKey is how long the key of a member may be that has a place.
	maxKey = 256
)

// place is where a value stands in the objects of a kind: a path of names and indexes. It has what
// was read there last, which is what is expected there.
type place struct {
	// name is that of a member, and key is how its text begins: `"name":`. Both are empty for an
	// element.
	name, key string
	// first is the place of the member that the value begins with if it is an object, and element
	// that of the first element if it is an array. Next is the place of the member or element
	// behind the value.
	first, element, next *place
	// newest is the place of a member of the value, and older is that of a member of the same
	// object, in the order in which they were made.
	newest, older *place
	children      int
	// members is how many the last object here had.
	members int
	// text is the string that is expected, and value is the same in an interface; nil if none is.
	// Asked is of the hash of the last string that was neither expected nor remembered.
	text  string
	value interface{}
	asked uint32
}

// places counts what a Decoder expects.
type places struct {
	root          *place
	made, refused int
	// since is the number of the text that was the first.
	since int
}

// under returns a new place, nil if there are too many.
func (c *places) under(p *place) *place {
	if p.children == maxChildren || c.made == maxPlaces {
		c.refused++
		return nil
	}
	p.children++
	c.made++
	return &place{}
}

// find returns the place of a member by its key, nil if it has none.
func (p *place) find(key []byte) *place {
	for m := p.newest; m != nil; m = m.older {
		if m.key == string(key) {
			return m
		}
	}
	return nil
}

// member returns a new place of a member, nil if there are too many.
func (c *places) member(p *place, name string, key []byte) *place {
	m := c.under(p)
	if m != nil {
		m.name, m.key = name, string(key)
		m.older, p.newest = p.newest, m
	}
	return m
}

// expect notes that the member here follows before, or is the first if that is nil.
func (p *place) expect(before, here *place) {
	if before == nil {
		p.first = here
	} else {
		before.next = here
	}
}

// element returns the place of the element behind before, nil for the first. The last elements of a
// long array share one.
func (c *places) element(p, before *place) *place {
	next := &p.element
	if before != nil {
		next = &before.next
	}
	switch {
	case *next != nil:
		return *next
	case p.children == maxChildren:
		return before // this is not counted: long arrays are no reason to forget
	}
	if *next = c.under(p); *next == nil {
		return before
	}
	return *next
}

// expects reports whether the string that begins at i with its quote is the expected one, and
// returns the offset behind it.
func (p *place) expects(text []byte, i int) (end int, yes bool) {
	if p == nil || p.value == nil {
		return 0, false
	}
	end = i + 1 + len(p.text)
	return end + 1, end < len(text) && text[end] == '"' && string(text[i+1:end]) == p.text
}

// learn expects a string from now on, if it is remembered, or if it stood here the last time too.
func (p *place) learn(value interface{}, known bool, tag uint32) {
	if p == nil {
		return
	}
	text := value.(string)
	switch {
	case known || p.asked == tag:
		p.text, p.value, p.asked = text, value, 0
	default:
		p.asked = tag
	}
}
