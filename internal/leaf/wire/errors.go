package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rvinformer/informer/api"
)

// Further reasons beside those of package api, to be tested with errors.Is. They come inside an
// *ItemError (that item is lost, Next goes on) or inside an *api.BodyError (the body is lost).
var (
	// ErrNoName: the item is well formed as far as was looked, but has no metadata.name.
	ErrNoName = errors.New("object without a name")
	// ErrStatus: the body is a Status. BodyError.Head shows its beginning, unless it is protobuf.
	ErrStatus = errors.New("a Status object instead")
	// ErrEmptyBody: no byte but white space. Such a body also counts as cut: it is
	// io.ErrUnexpectedEOF too.
	ErrEmptyBody = fmt.Errorf("empty body: %w", io.ErrUnexpectedEOF)
)

// ItemError is one item that could not be handed over. Next may be called again and returns the
// item after it.
//
// For ErrMalformed in JSON the end of the item was found by counting brackets from where the
// grammar broke. If that went wrong, because a quote was missing for instance, neighbours may have
// been swallowed with it, though a *BodyError is what usually follows. So a list with a malformed
// item, or with any lost item whose Name is empty, does not prove that an object is gone: do not
// sweep after it.
type ItemError struct {
	Reason error  // ErrMalformed, ErrTooLarge or ErrNoName
	Detail string // what was expected, for people; may be empty
	Index  int    // of the item
	Offset int64  // of the item's first byte
	At     int64  // of the fault
	Size   int64  // of the item

	// As far as they were seen before the fault. Copies, not lent.
	Namespace, Name string
}

func (e *ItemError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wire: item %d at byte %d", e.Index, e.Offset)
	if e.Name != "" {
		fmt.Fprintf(&b, " (%s/%s)", e.Namespace, e.Name)
	}
	fmt.Fprintf(&b, ": %v", e.Reason)
	if errors.Is(e.Reason, api.ErrTooLarge) {
		fmt.Fprintf(&b, " (%d bytes)", e.Size)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s at byte %d", e.Detail, e.At)
	}
	return b.String()
}

func (e *ItemError) Unwrap() error { return e.Reason }

// Malformed reports whether a body is wrong, and not only cut short: the same request may well have
// the same answer.
func Malformed(err error) bool {
	for _, reason := range []error{api.ErrMalformed, api.ErrTooLarge, api.ErrEndless, api.ErrNotList, api.ErrNotWatch, api.ErrContentType, ErrStatus} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}
