package objectcache

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Query says which objects of a store are selected. The zero value selects all.
type Query struct {
	// Namespace is the namespace of the objects; empty for all.
	Namespace string
	// Labels selects objects; nil for all.
	Labels labels.Selector
	// Indexed are values of indexes, all of which the objects have.
	Indexed []IndexedValue
	// Limit is how many objects are selected at most; zero for all.
	Limit int
}

// IndexedValue is a value in an index.
type IndexedValue struct{ Name, Value string }

// Select returns the objects that a query selects, in one state of the store and in no order,
// without decoding any. The error says that an index does not exist.
func (s *Store) Select(q Query) ([]Stored, error) {
	if q.Labels != nil && q.Labels.Empty() {
		q.Labels = nil
	}
	decided := s.decideSets(q)
	c, err := s.candidates(q, decided)
	if err != nil {
		return nil, err
	}
	return c.decide(s, q), nil
}

// candidates are the objects that a query selects, but for the labels of some.
type candidates struct {
	picks
	open []openCandidate
}

// openCandidate is an object whose labels the selector has yet to see. Neither the selector, which
// may be the user's code, nor anything else slow is called with the store's lock held.
type openCandidate struct {
	place int // in the picks
	set   uint32
	text  labelText
}

// candidates picks under the lock what is decided without the user's code.
func (s *Store) candidates(q Query, decided decidedSets) (c candidates, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.table
	source, others, err := t.plan(q)
	if err != nil {
		return c, err
	}
	if q.Labels == nil && len(others) == 0 && q.Limit <= 0 {
		c.list = make([]pick, 0, source.count())
	}
slots:
	for n := range source.all {
		if q.Limit > 0 && len(c.list)-len(c.open) >= q.Limit {
			break
		}
		for _, other := range others {
			if !other.has(n) {
				continue slots
			}
		}
		if q.Labels != nil {
			set := t.slots.at(n).labels
			text := t.labels.list[set].text
			matches, known := decided.of(set, text)
			if known && !matches {
				continue
			}
			if !known {
				c.open = append(c.open, openCandidate{place: len(c.list), set: set, text: labelText(text)})
			}
		}
		c.list = append(c.list, t.pick(n))
	}
	c.find(t)
	return c, nil
}

// plan returns what to go through, the shortest, and what else each slot has to be in.
func (t *table) plan(q Query) (source postings, others []postings, err error) {
	source = postings{table: t, every: true}
	if q.Namespace != "" {
		source = t.inNamespace(q.Namespace)
	}
	for _, indexed := range q.Indexed {
		if t.indexers[indexed.Name] == nil {
			return source, nil, unknownIndex(indexed.Name)
		}
		p := t.resolve(indexed.Name, indexed.Value)
		if p.count() < source.count() {
			source, p = p, source
		}
		others = append(others, p)
	}
	return source, others, nil
}

// decide asks the selector, once for each set of labels, and returns what it selects.
func (c *candidates) decide(s *Store, q Query) []Stored {
	limit := len(c.list)
	if q.Limit > 0 {
		limit = min(limit, q.Limit)
	}
	found := make([]Stored, 0, limit-min(limit, len(c.open)))
	matches := map[uint32]bool{}
	open := c.open
	for i := range c.list {
		if len(open) > 0 && open[0].place == i {
			match, known := matches[open[0].set]
			if !known {
				match = q.Labels.Matches(open[0].text)
				matches[open[0].set] = match
			}
			open = open[1:]
			if !match {
				continue
			}
		}
		if len(found) == limit {
			break
		}
		found = append(found, c.stored(s, i))
	}
	return found
}

// decidedSets are sets of labels, by number, that a selector has decided on.
type decidedSets struct {
	texts   []string
	matches []bool
}

// decideSets asks the selector about all sets of labels that there are, if the query goes through
// more objects than that.
func (s *Store) decideSets(q Query) (d decidedSets) {
	if q.Labels == nil {
		return d
	}
	s.mu.RLock()
	source, _, err := s.table.plan(q)
	if err == nil && source.count() > 2*len(s.table.labels.list) {
		d.texts = make([]string, len(s.table.labels.list))
		for set := range d.texts {
			d.texts[set] = s.table.labels.list[set].text
		}
	}
	s.mu.RUnlock()
	d.matches = make([]bool, len(d.texts))
	for set, text := range d.texts {
		d.matches[set] = q.Labels.Matches(labelText(text))
	}
	return d
}

// of returns what was decided on a set. Its number may have become another set's meanwhile, which
// text tells.
func (d *decidedSets) of(set uint32, text string) (matches, known bool) {
	if int(set) >= len(d.texts) || d.texts[set] != text {
		return false, false
	}
	return d.matches[set], true
}

// ListMatching returns the objects of a namespace, or of all if it is empty, that a selector
// selects, nil for all. It decodes only these, and the caller owns them. The error says which
// object cannot be decoded.
func ListMatching(s *Store, namespace string, selector labels.Selector) ([]runtime.Object, error) {
	found, err := s.Select(Query{Namespace: namespace, Labels: selector})
	if err != nil {
		return nil, err
	}
	objects := make([]runtime.Object, 0, len(found))
	for _, o := range found {
		obj, err := o.Decode()
		if err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
	return objects, nil
}
