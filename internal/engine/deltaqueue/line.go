package deltaqueue

// line is a list of entries in some order. It allocates nothing: an entry holds
// its own links, one pair for each line that it may stand in.
type line struct {
	first, last *Entry
	entries     int32
	which       lineName
}

func (l *line) len() int { return int(l.entries) }

type lineName int8

const (
	inOrder lineName = iota
	inReady
	lines // how many there are
)

type links struct{ before, after *Entry }

func (l *line) pushBack(e *Entry) {
	e.links[l.which] = links{before: l.last}
	if l.last != nil {
		l.last.links[l.which].after = e
	} else {
		l.first = e
	}
	l.last = e
	l.entries++
}

func (l *line) remove(e *Entry) {
	at := e.links[l.which]
	if at.before != nil {
		at.before.links[l.which].after = at.after
	} else {
		l.first = at.after
	}
	if at.after != nil {
		at.after.links[l.which].before = at.before
	} else {
		l.last = at.before
	}
	e.links[l.which] = links{}
	l.entries--
}

// replace puts e in the place of old.
func (l *line) replace(old, e *Entry) {
	at := old.links[l.which]
	old.links[l.which], e.links[l.which] = links{}, at
	if at.before != nil {
		at.before.links[l.which].after = e
	} else {
		l.first = e
	}
	if at.after != nil {
		at.after.links[l.which].before = e
	} else {
		l.last = e
	}
}

// next is the entry after e.
func (l *line) next(e *Entry) *Entry { return e.links[l.which].after }
