package wire

import "slices"

// node is a string, another scalar, an object or an array in the text of a pattern.
type node struct {
	from, to int
	// parent is the index of the node around it, -1 for the whole object.
	parent int
	kind   nodeKind
	// fixed tells that the node as a whole is no hole: the object, its metadata, and each string of
	// its identity.
	fixed bool
}

type nodeKind uint8

const (
	nodeKey nodeKind = iota
	// nodeFixedKey is a key of the object, or of its metadata, where keys say what values mean.
	nodeFixedKey
	nodeString
	nodeScalar
	nodeObject
	nodeArray
)

// nodeWalk finds the nodes of a text, and what the text says of its object.
type nodeWalk struct {
	text  []byte
	nodes []node
	says  identity

	i            int // in the text
	in, metadata int // the node around i, and that of the metadata; -1 for none
	keyNext      bool
	key          field // the newest key of the object, or of its metadata
	seen         uint32
}

// index finds the nodes of the text, which was scanned without a fault. It reports false for a text
// that must not be one: a key of the object or of its metadata has escapes, a value that counts is
// there twice or is of an unusual type, or there are too many nodes.
func (p *pattern) index() bool {
	w := nodeWalk{text: p.text, nodes: p.nodes[:0], says: identity{isThere: true}, in: -1, metadata: -1}
	ok := true
	for ok && w.i < len(w.text) {
		ok = w.step() && len(w.nodes) <= patternNodes
	}
	w.says.hasAPIVersion, w.says.hasKind = w.saw(fieldAPIVersion), w.saw(fieldKind)
	p.nodes, p.says = w.nodes, w.says
	return ok && w.metadata >= 0
}

// step passes one byte between nodes, or the beginning of a node, or all of a scalar.
func (w *nodeWalk) step() bool {
	switch c := w.text[w.i]; c {
	case ' ', '\t', '\n', '\r', ':':
		w.i++
		return true
	case ',':
		w.keyNext = w.nodes[w.in].kind == nodeObject
		w.i++
		return true
	case '}', ']':
		w.i++
		w.nodes[w.in].to = w.i
		w.in, w.keyNext = w.nodes[w.in].parent, false
		return true
	case '"':
		if w.keyNext {
			return w.passKey()
		}
		return w.passValue(nodeString)
	case '{':
		return w.passValue(nodeObject)
	case '[':
		return w.passValue(nodeArray)
	}
	return w.passValue(nodeScalar)
}

// speaks reports whether keys at i say what their values mean.
func (w *nodeWalk) speaks() bool { return w.in == 0 || w.in > 0 && w.in == w.metadata }

func (w *nodeWalk) passKey() bool {
	n := node{from: w.i, to: w.stringEnd(), parent: w.in, kind: nodeKey}
	ok := true
	if w.speaks() {
		n.kind = nodeFixedKey
		name := w.text[n.from+1 : n.to-1]
		w.key, ok = fieldNamed(name), isPlain(name)
	}
	w.nodes = append(w.nodes, n)
	w.i, w.keyNext = n.to, false
	return ok
}

func (w *nodeWalk) passValue(kind nodeKind) bool {
	n := node{from: w.i, parent: w.in, kind: kind, fixed: w.in < 0}
	var says *span
	if w.speaks() {
		isMetadata := w.in == 0 && w.key == fieldMetadata
		if says = w.identitySpan(); isMetadata || says != nil {
			if w.saw(w.key) || isMetadata != (kind == nodeObject) || says != nil && kind != nodeString {
				return false
			}
			n.fixed = true
			w.seen |= 1 << w.key
		}
		if isMetadata {
			w.metadata = len(w.nodes)
		}
	}
	switch kind {
	case nodeObject, nodeArray:
		w.in, w.keyNext = len(w.nodes), kind == nodeObject
		w.i++
	case nodeString:
		n.to = w.stringEnd()
		w.i = n.to
	default:
		n.to = w.scalarEnd()
		w.i = n.to
	}
	if says != nil {
		*says = span{n.from + 1, n.to - 1}
	}
	w.nodes = append(w.nodes, n)
	return true
}

func (w *nodeWalk) saw(f field) bool { return w.seen&(1<<f) != 0 }

// identitySpan is where the value of key belongs in the identity, nil if it is none of it.
func (w *nodeWalk) identitySpan() *span {
	if w.in == 0 {
		switch w.key {
		case fieldAPIVersion:
			return &w.says.apiVersion
		case fieldKind:
			return &w.says.kind
		}
		return nil
	}
	switch w.key {
	case fieldNamespace:
		return &w.says.namespace
	case fieldName:
		return &w.says.name
	case fieldUID:
		return &w.says.uid
	case fieldResourceVersion:
		return &w.says.rv
	}
	return nil
}

// stringEnd is where the string at i ends.
func (w *nodeWalk) stringEnd() int {
	i := w.i + 1
	for ; w.text[i] != '"'; i++ {
		if w.text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// scalarEnd is where the number or literal at i ends.
func (w *nodeWalk) scalarEnd() int {
	for i := w.i; i < len(w.text); i++ {
		switch c := w.text[i]; {
		case c == ',' || c == '}' || c == ']' || isSpace(c):
			return i
		}
	}
	return len(w.text)
}

// around is the smallest hole for a difference at an offset that is not among the holes yet.
func (p *pattern) around(difference int) (h hole, ok bool) {
	n, _ := slices.BinarySearchFunc(p.nodes, difference+1, func(n node, from int) int { return n.from - from })
	for n--; n >= 0; n = p.nodes[n].parent {
		it := p.nodes[n]
		goesOn := it.kind == nodeScalar && difference == it.to // as 1 in the text and 12 in the object
		if difference >= it.to && !goesOn {
			continue
		}
		if it.kind == nodeFixedKey {
			return hole{}, false
		}
		if isString := it.kind == nodeKey || it.kind == nodeString; isString && difference > it.from {
			return hole{from: it.from + 1, to: it.to - 1}, true
		}
		if it.kind == nodeKey {
			continue
		}
		if it.fixed {
			return hole{}, false
		}
		h = hole{from: it.from, to: it.to, value: true, depth: p.depth(n)}
		if !slices.Contains(p.holes, h) {
			return h, true
		}
	}
	return hole{}, false
}

// depth is how many nodes are around one.
func (p *pattern) depth(n int) (depth int) {
	for n = p.nodes[n].parent; n >= 0; n = p.nodes[n].parent {
		depth++
	}
	return depth
}
