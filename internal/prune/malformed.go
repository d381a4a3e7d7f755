package prune

import "fmt"

// MalformedError says where an encoded object cannot be read.
type MalformedError struct {
	Offset int // in the object, of the byte that was not expected
	Detail string
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("prune: malformed object at byte %d: %s", e.Offset, e.Detail)
}
