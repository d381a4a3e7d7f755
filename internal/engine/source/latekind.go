package source

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// lateKinds is what lists have said after their items. A proxy that decodes a list and encodes it
// again may sort the keys: apiVersion, items, kind. The items of built-in resources say no kind.
type lateKinds struct {
	// items is the type of the items, nil before the first such list.
	items atomic.Pointer[metav1.TypeMeta]
	// mixed tells that some items of such a list say their kind, and others do not.
	mixed atomic.Bool
}

// errLateKind says that a list was read only for the kind of its items. Nothing of it was handed
// on, and the next attempt knows the kind.
var errLateKind = errors.New("the list says the kind of its items after them")

// listedType returns the type of items that do not say one: what the list says before them, or else
// the example, or else what an earlier list has said after its items.
func (s *Source) listedType(m wire.ListMeta) metav1.TypeMeta {
	listed := metav1.TypeMeta{APIVersion: m.APIVersion, Kind: m.ItemKind()}
	if listed.Kind != "" {
		return listed
	}
	other := s.Expected.ItemType()
	if late := s.Memory.late.items.Load(); other.Kind == "" && m.Kind == "" && late != nil {
		other = *late
	}
	if other.Kind == "" {
		return listed
	}
	if listed.APIVersion == "" || s.Expected.Partial() {
		listed.APIVersion = other.APIVersion
	}
	listed.Kind = other.Kind
	return listed
}

// readLateKind reads a list to its end without its items, because neither the list so far nor the
// first item says of which kind the items are. The error is errLateKind if the end has told it.
func (s *Source) readLateKind(reader wire.ListReader, kind *kindCheck) error {
	says := false
	for {
		encoded, err := reader.Next()
		var lost *wire.ItemError
		switch {
		case err == nil:
			says = says || len(encoded.Kind) > 0
			continue
		case errors.As(err, &lost):
			continue
		case err != io.EOF:
			return err
		}
		break
	}
	m := reader.Meta()
	switch {
	case m.Kind == "":
		return errNoKind
	case m.ItemKind() != "":
		if err := kind.check(m.Kind); err != nil {
			return err
		}
		s.Memory.late.items.Store(&metav1.TypeMeta{APIVersion: m.APIVersion, Kind: m.ItemKind()})
	case says:
		s.Memory.late.mixed.Store(true)
	default:
		return fmt.Errorf("%w: neither its items nor its kind, %q, say of which kind the items are", api.ErrNotList, m.Kind)
	}
	return errLateKind
}
