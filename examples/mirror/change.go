package main

// changeKind says what a change does to the table.
type changeKind int

const (
	putRow          changeKind = iota // insert the object's row, or replace it
	removeRow                         // the object is gone
	dropOldVersions                   // remove rows that another API version of the resource has left behind
	dropResource                      // the cluster does not serve the resource any more
	barrier                           // nothing to write: it only learns when all that came before is on disk
)

// change is one step of the mirror, on its way from an informer's handler to the writer.
type change struct {
	kind            changeKind
	place           place
	namespace, name string
	uid             string
	resourceVersion string
	object          string // JSON

	// committed is called once the change is in the database for good, on the writer's goroutine. May be nil.
	committed func()
}

// overhead stands for everything of a change but its object, when bytes are counted.
const overhead = 256

// size is what the change holds in memory while it waits.
func (c change) size() int64 {
	return int64(len(c.object)) + overhead
}
