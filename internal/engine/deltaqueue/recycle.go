package deltaqueue

import "sync"

// spare has entries that are no longer in use, for their memory. The garbage collector empties it.
var spare = sync.Pool{New: func() any { return new(Entry) }}

func newEntry() *Entry { return spare.Get().(*Entry) }

// Recycle lets other entries have the memory of e, which the caller has given back with Done and
// does not look at any more.
func Recycle(e *Entry) {
	seen := e.seen[:cap(e.seen)]
	clear(seen)
	*e = Entry{seen: seen[:0]}
	spare.Put(e)
}
