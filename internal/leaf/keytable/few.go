package keytable

const (
	// fewMost is the number of keys that few has at most, and fewMostBytes the size of their
	// entries. To look at all of them takes about as long as to find one in a large table, which
	// waits for the memory.
	fewMost      = 32
	fewMostBytes = 3 << 10
	// fewAgain is the number of keys at which a table that has shrunk does without segments again.
	fewAgain = fewMost / 4

	// Before each entry are its size and a tag.
	fewSize  = 0
	fewTag   = 1
	fewEntry = 2
	// fewMostText bounds the text of an entry, so that one byte is enough for its size.
	fewMostText = 128

	// noSegment stands in a place for few.
	noSegment = ^uint32(0)
)

// few has the entries of a table of few keys, one behind the other. They have no stems, and a
// search looks at all of them: what it takes to find one of more is larger than they are.
//
// Invariant: there are no segments as long as few has an entry, and no entry refers to what is kept
// elsewhere.
type few struct {
	marks
	bytes []byte
}

// forFew reports whether the entry of key may be in few.
func forFew(key string, v *Binary) bool {
	return len(key)+len(v.Text)+len(v.UID) <= fewMostText && len(v.Text) <= entryMostString && len(v.UID) <= entryMostString
}

func fewTagOf(hash uint64) byte { return byte(hash) }

// searchFew returns the place of key.
func (t *Table) searchFew(hash uint64, key string) (place, bool) {
	b, tag := t.few.bytes, fewTagOf(hash)
	for at := 0; at < len(b); at += fewEntry + int(b[at+fewSize]) {
		if b[at+fewTag] != tag {
			continue
		}
		if e := entry(b[at+fewEntry:]); t.isOf(e, key) {
			return place{segment: noSegment, slot: uint32(at), entry: e}, true
		}
	}
	return place{}, false
}

// addFew adds an entry, marked with generation. It is false, and nothing happens, where few has no
// room.
func (t *Table) addFew(hash uint64, e entry, generation uint64) bool {
	f := &t.few
	need := len(f.bytes) + fewEntry + len(e)
	if need > fewMostBytes {
		return false
	}
	if len(f.bytes) == 0 {
		f.base = 1
	}
	e[entryMark] = t.markFor(noSegment, generation)
	if need > cap(f.bytes) { // an eighth more, in one of the sizes that the allocator has
		longer := append([]byte(nil), make([]byte, need+len(f.bytes)/8)...)
		f.bytes = longer[:copy(longer, f.bytes)]
	}
	f.bytes = append(append(f.bytes, byte(len(e)), fewTagOf(hash)), e...)
	return true
}

// dropFew takes out the entry at that place. Those behind it move up.
func (t *Table) dropFew(at uint32) {
	f := &t.few
	next := at + fewEntry + uint32(f.bytes[at+fewSize])
	f.bytes = append(f.bytes[:at], f.bytes[next:]...)
	if len(f.bytes) < cap(f.bytes)/2 {
		f.bytes = append([]byte(nil), f.bytes...)
	}
}

// each yields the entries.
func (f *few) each(yield func(e entry) bool) {
	for at := 0; at < len(f.bytes); at += fewEntry + int(f.bytes[at+fewSize]) {
		if !yield(entry(f.bytes[at+fewEntry:])) {
			return
		}
	}
}

// toSegments moves the entries of few to segments, where they have stems.
func (t *Table) toSegments() {
	old := t.few
	t.few, t.held, t.count = few{}, &held{}, 0
	var version Binary
	for e := range old.each {
		t.readVersion(e, &version)
		key := t.keyOf(e)
		t.insert(t.hasher.sum(key), key, &version, old.generationOf(e[entryMark]))
	}
}

// toFew moves the entries of a table that has shrunk to few, if it may have all of them.
func (t *Table) toFew() {
	for e := range t.each {
		texts := e[entryKinds]&versionMask == versionString || e[entryKinds]&uidMask == uidString
		if kind := e.textKind(); texts || kind == textLarge || len(t.stems.text(e.stem()))+textChars(e[entryText:], kind) > fewMostText {
			return
		}
	}
	for n := range t.segments {
		s := &t.segments[n]
		for e := range t.entriesOf(s) {
			key := t.keyOf(e)
			var buffer [entryMost]byte
			written, kind := appendText(append(buffer[:0], e[entryKinds]&(versionMask|uidMask), 0, 0, 0, 0), key)
			written[entryKinds] |= kind << textShift
			t.addFew(t.hasher.sum(key), append(written, e.whole()[e.versionAt():]...), s.generationOf(e[entryMark]))
		}
	}
	t.held = nothing
}

// isLeft reports whether the walk has a key with that hash before it.
func (c Cursor) isLeft(hash uint64) bool {
	first, tags, depth := uint64(c)>>cursorFirst<<cursorFirst, uint64(c)&0xffff, uint8(c>>cursorDepth&63)
	isPart := tags > 0 && hash>>(64-depth) == first>>(64-depth)
	return hash >= first && !(isPart && uint64(tagOf(hash)) < tags)
}
