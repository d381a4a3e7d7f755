package keytable

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// Binary is a Version as tables and checkpoints write it: what is a number is a
// number, and a UUID its 16 bytes. What it has as text may be lent.
//
// Invariant: a text that could be a number or a UUID is one.
type Binary struct {
	// Number is the resource version if IsNumber, Text if not.
	Number   uint64
	IsNumber bool
	Text     string
	// UUID is the UID if IsUUID, UID if not.
	UUID   [16]byte
	IsUUID bool
	UID    string
}

// Binary is v in binary, with the strings of v.
func (v Version) Binary() (b Binary) {
	b.SetResourceVersion(v.ResourceVersion)
	b.SetUID(string(v.UID))
	return b
}

// SetResourceVersion keeps s, if it is not a number.
func (b *Binary) SetResourceVersion(s string) {
	if b.Number, b.IsNumber = parseNumber(s); b.IsNumber {
		s = ""
	}
	b.Text = s
}

// SetUID keeps s, if it is not a UUID.
func (b *Binary) SetUID(s string) {
	if b.UUID, b.IsUUID = parseUUID(s); b.IsUUID {
		s = ""
	}
	b.UID = s
}

// Version is b in strings. Those that b has are lent.
func (b *Binary) Version() (v Version) {
	var buffer [20 + 36]byte
	written := buffer[:0]
	if b.IsNumber {
		written = strconv.AppendUint(written, b.Number, 10)
	}
	digits := len(written)
	if b.IsUUID {
		written = appendUUID(written, b.UUID[:])
	}
	both := string(written) // one allocation for the two
	v = Version{ResourceVersion: b.Text, UID: types.UID(b.UID)}
	if b.IsNumber {
		v.ResourceVersion = both[:digits]
	}
	if b.IsUUID {
		v.UID = types.UID(both[digits:])
	}
	return v
}
