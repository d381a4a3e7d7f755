package main

// changeKind says what a change does to the table.
type changeKind int

const (
	putRow          changeKind = iota // insert the object's row, or replace it
	removeRow                         // the object is gone
	dropOldVersions                   // remove rows that another API version of the resource has left behind
	dropResource                      // the cluster does not serve the resource any more
)

// change is one step of the mirror, of one object, or of a resource as a whole.
type change struct {
	kind            changeKind
	place           place
	namespace, name string
	uid             string
	resourceVersion string
	object          string // JSON
	standIn         string // for a database that does not take the object as what it is; empty where it does
}

// target is what is written: an object's row, a resource as a whole, or its checkpoint.
type target struct {
	place           place
	namespace, name string // empty for the resource as a whole
	checkpoint      bool
}

func (c change) target() target {
	return target{place: c.place, namespace: c.namespace, name: c.name}
}
