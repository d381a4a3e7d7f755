package server

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// Identifier tells which set of objects is followed, and at which server. A *Resource is one.
type Identifier interface {
	// Identify returns the source of a checkpoint, as far as it is known. If it fails, it
	// should be called again later.
	Identify(ctx context.Context) (checkpoint.Source, error)
	// Address is the URL of the server, empty if it is not known. It may change: see
	// Resource.Reconfigure.
	Address() string
	// Ask asks the server whether it still is the one that is known.
	Ask(ctx context.Context, q Inquiry) (Answer, error)
	// Compare asks the server for all objects, to tell whether it is the one that is known. If it
	// fails, it should be called again later.
	Compare(ctx context.Context, c Comparison) (Answer, error)
	// Find asks the server for the version of an object, in data not older than a resource version.
	// It finds nothing, at no version, if the server cannot be asked. An error of the kind
	// listwatch.TooLarge says that the server does not have the resource version.
	Find(ctx context.Context, key, resourceVersion string) (Found, error)
	// Responds reports whether the server answers a list, as far as that can be told.
	Responds(ctx context.Context) bool
}

var _ Identifier = &Resource{}

// IdentifierOf returns the Identifier of the server that lw reads. If lw is not a Resource, it
// knows nothing but the selectors of a Filtered one.
func IdentifierOf(lw cache.ListerWatcher) Identifier {
	if r := Of(lw); r != nil {
		return r
	}
	if f, ok := lw.(Filtered); ok {
		return foreign{f.Selection, f.older}
	}
	return foreign{selection: func() (none checkpoint.Source) { return none }}
}

// foreign is the Identifier of a server that cannot be asked. The selection is asked for each time,
// because a tweak may change its mind until a run begins.
type foreign struct {
	selection func() checkpoint.Source
	older     error
}

func (f foreign) Identify(context.Context) (checkpoint.Source, error) { return f.selection(), nil }
func (foreign) Address() string                                       { return "" }
func (foreign) Compare(context.Context, Comparison) (Answer, error)   { return Answer{}, nil }
func (foreign) Find(context.Context, string, string) (Found, error)   { return Found{}, nil }
func (foreign) Responds(context.Context) bool                         { return false }

func (f foreign) Ask(_ context.Context, q Inquiry) (Answer, error) {
	if q.VersionOnly {
		return Answer{}, f.older
	}
	return Answer{}, nil
}
