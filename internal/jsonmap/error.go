package jsonmap

import (
	"errors"
	"fmt"
)

// ErrNoKind says that an object has no kind.
var ErrNoKind = errors.New("object without a kind")

// Error says where a text is not the JSON of an object.
type Error struct {
	Offset int // of the byte that was not expected
	Detail string
}

func (e *Error) Error() string {
	return fmt.Sprintf("malformed object at byte %d: %s", e.Offset, e.Detail)
}
