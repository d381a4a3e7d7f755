package keytable

import (
	"encoding/binary"
	"strings"
)

// Places within an entry; see the package documentation.
const (
	entryKinds = 0
	entryMark  = 1
	entryStem  = 2
	entryText  = 5

	// entryMostChars is the longest text that an entry has itself.
	entryMostChars = 255
	// entryMostString is the longest resource version or UID that an entry has as
	// length and bytes. Its length is entryLarge for one that is kept elsewhere.
	entryMostString = 64
	entryLarge      = 255
	// entryMost is the size of the largest entry.
	entryMost = entryText + 1 + entryMostChars + 2*(1+entryMostString)
)

// Kinds of resource version; up to 8, the bytes of a number.
const (
	versionEmpty  = 9
	versionString = 10

	versionMask = 0xf
)

// Kinds of UID.
const (
	uidNone   = 0 << 4
	uidUUID   = 1 << 4
	uidString = 2 << 4

	uidMask = 3 << 4
)

// textShift is where the kind of text is in the kinds.
const textShift = 6

// entry is the bytes of an entry, and whatever comes after them.
type entry []byte

func (e entry) textKind() byte { return e[entryKinds] >> textShift }

func (e entry) stem() uint32 { return read24(e[entryStem:]) }

// versionAt is the place of the resource version.
func (e entry) versionAt() int { return entryText + textSize(e[entryText:], e.textKind()) }

// uidAt is the place of the UID, if the resource version is at versionAt.
func (e entry) uidAt(versionAt int) int {
	switch kind := e[entryKinds] & versionMask; kind {
	case versionEmpty:
		return versionAt
	case versionString:
		return versionAt + stringSize(e[versionAt:])
	default:
		return versionAt + int(kind)
	}
}

// number is the resource version at versionAt, which is a number.
func (e entry) number(versionAt int) uint64 {
	size := int(e[entryKinds] & versionMask)
	if written := e[versionAt:]; len(written) >= 8 {
		return binary.LittleEndian.Uint64(written) & (1<<(8*size) - 1)
	}
	return readNumber(e[versionAt : versionAt+size])
}

// size is the number of bytes of the entry, if the UID is at uidAt.
func (e entry) size(uidAt int) int {
	switch e[entryKinds] & uidMask {
	case uidUUID:
		return uidAt + 16
	case uidString:
		return uidAt + stringSize(e[uidAt:])
	}
	return uidAt
}

// whole is the entry without what comes after it.
func (e entry) whole() entry { return e[:e.size(e.uidAt(e.versionAt()))] }

// stringSize is the size of the string of length and bytes that begins there.
func stringSize(written []byte) int {
	if written[0] == entryLarge {
		return 1 + 4
	}
	return 1 + int(written[0])
}

// appendString adds length and bytes of s.
func (t *Table) appendString(to []byte, s string) []byte {
	if len(s) > entryMostString {
		return binary.LittleEndian.AppendUint32(append(to, entryLarge), t.large.add(strings.Clone(s)))
	}
	return append(append(to, byte(len(s))), s...)
}

// readString is what appendString added. It is borrowed from the table.
func (t *Table) readString(written []byte) string {
	if written[0] == entryLarge {
		return t.large.texts[binary.LittleEndian.Uint32(written[1:])]
	}
	return Borrowed(written[1:stringSize(written)])
}

// removeString forgets what appendString has put elsewhere.
func (t *Table) removeString(written []byte) {
	if written[0] == entryLarge {
		t.large.remove(binary.LittleEndian.Uint32(written[1:]))
	}
}

// appendVersion adds v as entries have it, and its kinds.
func (t *Table) appendVersion(to []byte, v *Binary) (longer []byte, kinds byte) {
	switch {
	case v.IsNumber:
		to, kinds = appendNumber(to, v.Number), byte(numberSize(v.Number))
	case v.Text == "":
		kinds = versionEmpty
	default:
		to, kinds = t.appendString(to, v.Text), versionString
	}
	switch {
	case v.IsUUID:
		return append(to, v.UUID[:]...), kinds | uidUUID
	case v.UID == "":
		return to, kinds | uidNone
	}
	return t.appendString(to, v.UID), kinds | uidString
}

// readVersion is what appendVersion added. Its strings are borrowed from the table.
func (t *Table) readVersion(e entry, v *Binary) {
	versionAt := e.versionAt()
	uidAt := e.uidAt(versionAt)
	*v = Binary{}
	switch e[entryKinds] & versionMask {
	case versionEmpty:
	case versionString:
		v.Text = t.readString(e[versionAt:])
	default:
		v.Number, v.IsNumber = e.number(versionAt), true
	}
	switch e[entryKinds] & uidMask {
	case uidUUID:
		v.IsUUID = true
		copy(v.UUID[:], e[uidAt:])
	case uidString:
		v.UID = t.readString(e[uidAt:])
	}
}

// versionOf is the version of an entry, in new strings.
func (t *Table) versionOf(e entry) Version {
	var b Binary
	t.readVersion(e, &b)
	b.Text, b.UID = strings.Clone(b.Text), strings.Clone(b.UID)
	return b.Version()
}

// compare compares v to the version of an entry.
func (t *Table) compare(e entry, v Version) Comparison {
	versionAt := e.versionAt()
	uidAt := e.uidAt(versionAt)
	c := Comparison{Known: true, Identified: e[entryKinds]&uidMask != uidNone}
	switch kind := e[entryKinds] & versionMask; kind {
	case versionEmpty:
		c.SameVersion = v.ResourceVersion == ""
	case versionString:
		c.SameVersion = v.ResourceVersion == t.readString(e[versionAt:])
	default:
		n, ok := parseNumber(v.ResourceVersion)
		c.SameVersion = ok && n == e.number(versionAt)
	}
	if !c.Identified || v.UID == "" {
		c.SameObject = true
		return c
	}
	switch e[entryKinds] & uidMask {
	case uidUUID:
		uuid, ok := parseUUID(string(v.UID))
		c.SameObject = ok && string(uuid[:]) == string(e[uidAt:uidAt+16])
	case uidString:
		c.SameObject = string(v.UID) == t.readString(e[uidAt:])
	}
	return c
}

// appendKey adds the first bytes of the entry of key, up to its version, whose
// kinds the caller adds, without a mark. The entry refers to its stem.
func (t *Table) appendKey(to []byte, key string) []byte {
	stem, text := t.stemOf(key, true)
	start := len(to)
	to = append(to, 0, 0, byte(stem), byte(stem>>8), byte(stem>>16))
	kind := byte(textLarge)
	if len(text) > entryMostChars {
		to = binary.LittleEndian.AppendUint32(to, t.large.add(strings.Clone(text)))
	} else {
		to, kind = appendText(to, text)
	}
	to[start+entryKinds] |= kind << textShift
	return to
}

// stemOf is the stem of key, which one more refers to, and what follows it. New
// ones are only made for new keys.
func (t *Table) stemOf(key string, isNew bool) (stem uint32, rest string) {
	namespace, dash := strings.IndexByte(key, '/')+1, strings.LastIndexByte(key, '-')+1
	if dash > namespace {
		if stem = t.intern(key[:dash], isNew); stem != 0 {
			return stem, key[dash:]
		}
	}
	if stem = t.intern(key[:namespace], isNew); stem != 0 {
		return stem, key[namespace:]
	}
	return 0, key
}

// intern is the stem that text is, which one more refers to, or 0.
func (t *Table) intern(text string, isNew bool) uint32 {
	if text == "" || len(text) > stemMostChars {
		return 0
	}
	if id := t.stems.recent; id != 0 && t.stems.text(id) == text {
		t.stems.refer(id)
		return id
	}
	hash := t.hasher.sum(text)
	if id := t.stems.find(hash, text); id != 0 {
		t.stems.refer(id)
		t.stems.recent = id
		return id
	}
	if !isNew || !t.stems.worthwhile(hash) {
		return 0
	}
	return t.stems.add(&t.hasher, hash, text)
}

// restem is an entry of key with the stems that have come to be after e was made:
// e itself where there are none.
func (t *Table) restem(to []byte, e entry, key string) entry {
	e = e.whole()
	if kind := e.textKind(); kind == textLarge || kind == textGenerated {
		return e
	}
	text := key[len(key)-int(e[entryText]):]
	if strings.IndexByte(text, '-') < 0 && (e.stem() != 0 || strings.IndexByte(text, '/') < 0) {
		return e
	}
	stem, text := t.stemOf(key, false)
	if stem == e.stem() {
		t.stems.release(&t.hasher, stem)
		return e
	}
	t.stems.release(&t.hasher, e.stem())
	to = append(to, e[:entryText]...)
	write24(to[entryStem:], stem)
	to, kind := appendText(to, text)
	to[entryKinds] = to[entryKinds]&^(3<<textShift) | kind<<textShift
	return append(to, e[e.versionAt():]...)
}

// appendEntryKey adds the key of an entry.
func (t *Table) appendEntryKey(to []byte, e entry) []byte {
	to = append(to, t.stems.text(e.stem())...)
	if e.textKind() == textLarge {
		return append(to, t.large.texts[binary.LittleEndian.Uint32(e[entryText:])]...)
	}
	return appendRead(to, e[entryText:], e.textKind())
}

// isOf reports whether e is the entry of key.
func (t *Table) isOf(e entry, key string) bool {
	kind := e.textKind()
	if kind == textLarge {
		text := t.large.texts[binary.LittleEndian.Uint32(e[entryText:])]
		return strings.HasSuffix(key, text) && key[:len(key)-len(text)] == t.stems.text(e.stem())
	}
	rest := len(key) - textChars(e[entryText:], kind)
	return rest >= 0 && textEqual(e[entryText:], kind, key[rest:]) && key[:rest] == t.stems.text(e.stem())
}

// forgetVersion forgets what the version of an entry has elsewhere.
func (t *Table) forgetVersion(e entry) {
	versionAt := e.versionAt()
	if e[entryKinds]&versionMask == versionString {
		t.removeString(e[versionAt:])
	}
	if e[entryKinds]&uidMask == uidString {
		t.removeString(e[e.uidAt(versionAt):])
	}
}

// forget forgets all that an entry has elsewhere.
func (t *Table) forget(e entry) {
	t.forgetVersion(e)
	if e.textKind() == textLarge {
		t.large.remove(binary.LittleEndian.Uint32(e[entryText:]))
	}
	t.stems.release(&t.hasher, e.stem())
}
