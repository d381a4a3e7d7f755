package sqlsink

import (
	"context"
	"io"

	"github.com/rvinformer/informer"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// database is where the objects go: a row for each, with its resource version, and beside the rows
// how far each place is complete. All methods may be called side by side; Apply and SaveCheckpoint
// as often at once as Sink.Writers says, and for the same object one after the other.
//
// A context with an epoch (informer.WithEpoch) says that the place may have had, or get, another
// owner. From the Claim on, nothing of another epoch is written: a write under one gets a
// *staleError.
type database interface {
	// Claim stores the epoch of the context for the unit of a place, if it has one. All transactions
	// of older epochs that write to the place have ended then, and no other will change what is read.
	Claim(ctx context.Context, of place) error
	// Apply writes all the rows in one transaction, or none of them, but those that the database
	// refuses. It writes the same again without harm.
	Apply(ctx context.Context, of place, rows []row) (refused informer.FailedEvents, err error)
	// SaveCheckpoint keeps what write writes as the checkpoint of a place, instead of the one
	// before.
	SaveCheckpoint(ctx context.Context, of place, write func(io.Writer) error) error

	// See reader for these.
	Versions(ctx context.Context, of place, visit func(row) error) error
	Objects(ctx context.Context, of place, names []cache.ObjectName, visit func(row) error) error
	Resources(ctx context.Context, cluster string) ([]schema.GroupVersionResource, error)
	Checkpoint(ctx context.Context, of place, part int) ([]byte, error)
	Heads(ctx context.Context, of place, visit func(head []byte, hasRows bool)) error

	Close() error
}
