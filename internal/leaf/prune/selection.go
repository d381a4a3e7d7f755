package prune

// selection is what the paths say of one value. The zero value keeps all of it.
type selection struct {
	keep  *tree // what stays of it; nil: all
	prune *tree // what is dropped from what stays; nil: nothing
}

// all reports whether the whole value stays.
func (s selection) all() bool { return s.keep == nil && s.prune == nil }

// member returns what is selected of the member of an object, and whether it stays.
func (s selection) member(name string) (within selection, stays bool) {
	if s.keep != nil {
		kept := s.keep.child(name)
		if kept == nil {
			return selection{}, false
		}
		if !kept.end {
			within.keep = kept
		}
	}
	if s.prune != nil {
		if dropped := s.prune.child(name); dropped != nil {
			if dropped.end {
				return selection{}, false
			}
			within.prune = dropped
		}
	}
	return within, true
}

// element returns what is selected of the elements of an array, into which only paths of Keep lead.
func (s selection) element() selection { return selection{keep: s.keep} }

// named returns the paths that the members of an object are looked up in.
func (s selection) named() []*tree {
	if s.keep != nil {
		return s.keep.children
	}
	return s.prune.children
}

// value drops from a value of an unstructured object what does not stay, in place. It returns
// what is left, and whether the value stays itself.
func (s selection) value(v interface{}) (left interface{}, stays bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case map[string]interface{}:
		s.object(v)
		return v, true
	case []interface{}:
		if s.keep == nil {
			return v, true
		}
		return s.element().array(v), true
	default:
		return v, s.keep == nil
	}
}

// object is value for a map.
func (s selection) object(m map[string]interface{}) {
	if s.keep == nil {
		for _, named := range s.prune.children {
			if v, ok := m[named.name]; ok {
				s.put(m, named.name, v)
			}
		}
		return
	}
	for name, v := range m {
		s.put(m, name, v)
	}
}

// put is value for the member of a map.
func (s selection) put(m map[string]interface{}, name string, v interface{}) {
	within, stays := s.member(name)
	if stays && !within.all() {
		v, stays = within.value(v)
		m[name] = v
	}
	if !stays {
		delete(m, name)
	}
}

// array is value for each element. Objects and nulls stay.
func (s selection) array(elements []interface{}) []interface{} {
	left := elements[:0]
	for _, e := range elements {
		switch e := e.(type) {
		case nil:
		case map[string]interface{}:
			s.object(e)
		default:
			continue
		}
		left = append(left, e)
	}
	clear(elements[len(left):])
	return left
}
