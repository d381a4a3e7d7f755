package objectcache

import "github.com/rvinformer/informer/internal/leaf/pack"

// pick is what has to be copied of a slot under the lock for a handle of its object.
type pick struct {
	ref        pack.Ref
	namespace  string
	slot, born uint32
	uid        uint32
	form       uint8
	hasNumber  bool
}

func (t *table) pick(n uint32) pick {
	of := t.slots.at(n)
	return pick{of.ref, t.namespaces.list[of.namespace].text, n, of.born, of.uid, of.form, of.flags&hasNumber != 0}
}

// picks are objects that were picked under the lock, and how their records are found without it.
type picks struct {
	list []pick
	view pack.View
	// records are used for a few picks, for which a view would cost more.
	records []pack.Record
}

// fewPicks is how many records are found under the lock: a view of 100,000 objects takes as long as
// a thousand records.
const fewPicks = 1000

// find ends the picking: the records are found. The caller still holds the lock.
func (p *picks) find(t *table) {
	if len(p.list) > fewPicks {
		p.view = t.pack.View()
		return
	}
	p.records = make([]pack.Record, len(p.list))
	for i := range p.list {
		p.records[i] = t.pack.Record(p.list[i].ref)
	}
}

// stored returns the handle of the object at a place of the list.
func (p *picks) stored(s *Store, i int) Stored {
	of := &p.list[i]
	if p.records != nil {
		return s.stored(of, p.records[i])
	}
	return s.stored(of, p.view.Record(of.ref))
}

func (s *Store) stored(of *pick, record pack.Record) Stored {
	return Stored{
		store: s, record: record, form: s.forms.get(of.form), namespace: of.namespace,
		slot: of.slot, born: of.born, hasNumber: of.hasNumber, uid: of.uid,
	}
}
