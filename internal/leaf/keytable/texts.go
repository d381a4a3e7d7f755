package keytable

import (
	"encoding/binary"
	"strconv"
	"strings"
)

const (
	// textsPiece is the size of the memory that some texts share. Who keeps one of them keeps as
	// much.
	textsPiece = 2 << 10
	// numberMostChars is the length of the longest number.
	numberMostChars = 20
)

// Texts are keys and, if they are asked for, their resource versions, each at the same index. They
// share pieces of 2 KiB of memory, which is never written again unless they are lent: to have a
// piece for each takes twice as long as to find and write them.
type Texts struct {
	Keys []string
	// ResourceVersions is nil if they are not asked for.
	ResourceVersions []string
	// Lent has the next call of TextsFrom write over the texts, and lend others in their place.
	Lent  bool
	piece []byte
	// pieces is what the pieces since the last call had room for.
	pieces int
}

// begin lets go of the texts that were lent. Their pieces become one that has room for as many.
func (x *Texts) begin() {
	if !x.Lent {
		return
	}
	x.Keys, x.ResourceVersions = x.Keys[:0], x.ResourceVersions[:0]
	if x.pieces > cap(x.piece) {
		x.piece = make([]byte, 0, x.pieces)
	}
	x.piece, x.pieces = x.piece[:0], cap(x.piece)
}

// TextsFrom adds about most of the next keys of the table to texts, with resource versions if these
// are not nil, and returns where to go on. The table may change between the calls, as for
// UnmarkedFrom.
func (t *Table) TextsFrom(cursor Cursor, most int, texts *Texts) (next Cursor) {
	texts.begin()
	return t.walk(cursor, most, func(_ *marks, entries []entry) {
		t.touch(entries)
		versions := texts.ResourceVersions != nil
		for _, e := range entries {
			stem := t.stems.text(e.stem())
			kind := e.textKind()
			if kind == textLarge {
				texts.Keys = append(texts.Keys, stem+t.large.texts[binary.LittleEndian.Uint32(e[entryText:])])
			} else {
				texts.reserve(len(stem) + textChars(e[entryText:], kind) + packedChars + numberMostChars)
				from := len(texts.piece)
				texts.piece = appendRead(append(texts.piece, stem...), e[entryText:], kind)
				texts.Keys = append(texts.Keys, Borrowed(texts.piece[from:]))
			}
			if versions {
				texts.ResourceVersions = append(texts.ResourceVersions, t.resourceVersionOf(e, texts))
			}
		}
	})
}

// resourceVersionOf is the resource version of an entry, in the memory of texts.
func (t *Table) resourceVersionOf(e entry, texts *Texts) string {
	at := e.versionAt()
	switch e[entryKinds] & versionMask {
	case versionEmpty:
		return ""
	case versionString:
		return strings.Clone(t.readString(e[at:]))
	}
	texts.reserve(numberMostChars) // there mostly is: after a key
	from := len(texts.piece)
	texts.piece = strconv.AppendUint(texts.piece, e.number(at), 10)
	return Borrowed(texts.piece[from:])
}

// reserve has room for size bytes in the piece: what was written before is not written again.
func (x *Texts) reserve(size int) {
	if cap(x.piece)-len(x.piece) < size {
		x.piece = make([]byte, 0, max(size, textsPiece))
		x.pieces += cap(x.piece)
	}
}
