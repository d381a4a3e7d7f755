package wire

import "github.com/rvinformer/informer/api"

// field is a key that some reader looks at.
type field uint8

const (
	fieldOther field = iota
	fieldEnd         // no key: the object's end
	fieldAPIVersion
	fieldKind
	fieldMetadata
	fieldItems
	fieldType
	fieldObject
	fieldName
	fieldNamespace
	fieldUID
	fieldResourceVersion
	fieldContinue
	fieldRemainingItemCount
	fieldShardInfo
	fieldSelector
)

// The longest name above, each letter as \uXXXX. A longer key is none of them.
const maxEscapedField = len("remainingItemCount") * 6

// fieldOf matches as apimachinery does: exactly, letter case included, after unescaping. It must be
// called while keep still holds the key. Keys of a dropped item match nothing.
func (s *jsonScan) fieldOf(key span) field {
	raw := s.raw(key)
	f := fieldNamed(raw)
	if f == fieldOther && len(raw) <= maxEscapedField && !isPlain(raw) {
		mark := len(s.scratch)
		if v, ok := s.unescaped(key); ok {
			f = fieldNamed(v)
		}
		s.scratch = s.scratch[:mark]
	}
	return f
}

func fieldNamed(b []byte) field {
	switch string(b) {
	case "apiVersion":
		return fieldAPIVersion
	case "kind":
		return fieldKind
	case "metadata":
		return fieldMetadata
	case "items":
		return fieldItems
	case "type":
		return fieldType
	case "object":
		return fieldObject
	case "name":
		return fieldName
	case "namespace":
		return fieldNamespace
	case "uid":
		return fieldUID
	case "resourceVersion":
		return fieldResourceVersion
	case "continue":
		return fieldContinue
	case "remainingItemCount":
		return fieldRemainingItemCount
	case "shardInfo":
		return fieldShardInfo
	case "selector":
		return fieldSelector
	}
	return fieldOther
}

// identity is where an object, whose bytes are text, says what it is. Of repeated keys the last one
// counts, and null counts as no key, as in every Go decoder.
type identity struct {
	text                            span
	apiVersion, kind                span
	namespace, name, uid, rv        span
	hasAPIVersion, hasKind, isThere bool
}

// object passes the object that begins at pos, inside an item that keep holds, and fills obj. A
// value of another type is noted.
func (s *jsonScan) object() bool {
	from := s.pos - s.keep
	if s.buf[s.pos] != '{' {
		s.note("an object expected")
		return s.skip()
	}
	if s.mayMatch() && s.byPattern() {
		return true
	}
	s.obj = identity{isThere: true}
	ok := s.members(func(f field) bool {
		switch f {
		case fieldAPIVersion:
			s.obj.hasAPIVersion = true
			return s.text(&s.obj.apiVersion)
		case fieldKind:
			s.obj.hasKind = true
			return s.text(&s.obj.kind)
		case fieldMetadata:
			// Of repeated keys the last counts, with all that it lacks.
			s.obj.namespace, s.obj.name, s.obj.uid, s.obj.rv = span{}, span{}, span{}, span{}
			return s.metadata()
		}
		return s.skip()
	})
	if !ok {
		return false
	}
	s.obj.text = span{from, s.pos - s.keep}
	if s.pattern != nil && !s.dropped && s.fault == nil {
		s.pattern.offer(s.raw(s.obj.text))
	}
	return true
}

func (s *jsonScan) metadata() bool {
	if s.buf[s.pos] != '{' {
		return s.null("an object expected as metadata")
	}
	return s.members(func(f field) bool {
		switch f {
		case fieldName:
			return s.text(&s.obj.name)
		case fieldNamespace:
			return s.text(&s.obj.namespace)
		case fieldUID:
			return s.text(&s.obj.uid)
		case fieldResourceVersion:
			return s.text(&s.obj.rv)
		}
		return s.skip()
	})
}

// identify fills in what obj says. Strings that are no valid JSON are noted.
func (s *jsonScan) identify(item *Item) {
	o := &s.obj
	item.hasAPIVersion, item.hasKind = o.hasAPIVersion, o.hasKind
	s.value(&item.APIVersion, o.apiVersion)
	s.value(&item.Kind, o.kind)
	s.value(&item.Namespace, o.namespace)
	s.value(&item.Name, o.name)
	s.value(&item.UID, o.uid)
	s.value(&item.ResourceVersion, o.rv)
}

func (s *jsonScan) value(dst *[]byte, v span) {
	b, ok := s.unescaped(v)
	if !ok {
		s.note("invalid string")
	}
	*dst = b
}

// itemError is the error of the unit, whose end has been reached, or nil if the item may be handed
// over.
func (s *jsonScan) itemError(item *Item, mayBeNameless bool) error {
	size := s.at() - s.unit
	if !s.dropped && size <= s.limit && s.fault == nil && (len(item.Name) > 0 || mayBeNameless) {
		return nil
	}
	e := &ItemError{Reason: ErrNoName, Index: item.Index, Offset: s.unit, At: s.at(), Size: size,
		Namespace: string(item.Namespace), Name: string(item.Name)}
	switch {
	case s.dropped:
		e.Reason, e.Namespace, e.Name = api.ErrTooLarge, s.lostNamespace, s.lostName
	case size > s.limit:
		e.Reason = api.ErrTooLarge
	case s.fault != nil:
		e.Reason, e.Detail, e.At = s.fault, s.faultDetail, s.faultAt
	}
	return e
}
