package sink

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/engine/object"
)

// TwiceError says that a generation has shown another object of the same key before, which is kept.
// It comes within an *api.ItemError.
type TwiceError struct{ Kept types.UID }

func (e *TwiceError) Error() string {
	return fmt.Sprintf("the list has several objects of this name: the one with the UID %q is kept", e.Kept)
}

// Twice returns the error for an item that is not the object which is kept.
func Twice(it object.Item, kept types.UID) error { return it.Unreadable(&TwiceError{Kept: kept}) }
