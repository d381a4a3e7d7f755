package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Reasons, to be tested with errors.Is. They come inside an *ItemError (that item is lost, Next
// goes on) or inside a *BodyError (the body is lost).
var (
	// ErrMalformed: not the syntax, or not the types, that the format asks for.
	ErrMalformed = errors.New("malformed")
	// ErrTooLarge: over MaxItemBytes. In a *BodyError: what stands between the items is.
	ErrTooLarge = errors.New("too large")
	// ErrNoName: the item is well formed as far as was looked, but has no metadata.name.
	ErrNoName = errors.New("object without a name")
	// ErrEndless: an item was skipped for 16 times MaxItemBytes and no end was seen.
	ErrEndless = errors.New("endless item")
	// ErrNotList: the body is no list: HTML, null, an array, an object without items.
	ErrNotList = errors.New("not a Kubernetes list")
	// ErrNotWatch: the body is no sequence of watch events.
	ErrNotWatch = errors.New("not a Kubernetes watch")
	// ErrStatus: the body is a Status. BodyError.Head shows its beginning, unless it is protobuf.
	ErrStatus = errors.New("a Status object instead")
	// ErrEmptyBody: no byte but white space. Such a body also counts as cut: it is
	// io.ErrUnexpectedEOF too.
	ErrEmptyBody = fmt.Errorf("empty body: %w", io.ErrUnexpectedEOF)
	// ErrContentType: the Content-Type is neither JSON nor the protobuf of Kubernetes.
	ErrContentType = errors.New("unknown content type")
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
	if errors.Is(e.Reason, ErrTooLarge) {
		fmt.Fprintf(&b, " (%d bytes)", e.Size)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s at byte %d", e.Detail, e.At)
	}
	return b.String()
}

func (e *ItemError) Unwrap() error { return e.Reason }

// BodyError ends a body. Items handed over before it are good, but the list is not complete.
//
// A body that was cut, anywhere, is io.ErrUnexpectedEOF; an error of the underlying reader (a
// canceled context, a reset connection) is that error; both by errors.Is. The others have one of
// the reasons above.
type BodyError struct {
	Watch  bool   // the body is a watch, not a list
	Offset int64  // where
	Items  int    // items seen before, lost ones counted
	Head   []byte // the first bytes of a body that is no list or watch, as Quote returns them
	Err    error  // the reason, and what was expected
}

func (e *BodyError) Error() string {
	kind := "list"
	if e.Watch {
		kind = "watch"
	}
	text := fmt.Sprintf("%s: %v at byte %d, after %d items", kind, e.Err, e.Offset, e.Items)
	if len(e.Head) > 0 {
		text += fmt.Sprintf("; it begins %q", e.Head)
	}
	return text
}

// Unwrap returns what is wrong.
func (e *BodyError) Unwrap() error { return e.Err }

// Malformed reports whether a body is wrong, and not only cut short: the same request may well have
// the same answer.
func Malformed(err error) bool {
	for _, reason := range []error{ErrMalformed, ErrTooLarge, ErrEndless, ErrNotList, ErrNotWatch, ErrContentType, ErrStatus} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// Recoverable says whether Next may be called again after err.
func Recoverable(err error) bool {
	var item *ItemError
	return errors.As(err, &item)
}
