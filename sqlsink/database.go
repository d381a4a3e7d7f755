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
// as often at once as Writers says, and for the same object one after the other.
//
// A context with an epoch (informer.WithEpoch) says that the place may have had, or get, another
// owner. From the Claim on, nothing of another epoch is written: a write under one gets a
// *staleError.
type database interface {
	// Claim stores the epoch of the context for the unit of a place, if it has one. What is read
	// afterwards, no owner before changes any more.
	Claim(ctx context.Context, of place) error
	// Apply writes all the rows in one transaction, or none of them, but those that the database
	// refuses. It writes the same again without harm.
	Apply(ctx context.Context, of place, rows []row) (refused informer.FailedEvents, err error)
	// SaveCheckpoint keeps what write writes as the checkpoint of a place, instead of the one
	// before.
	SaveCheckpoint(ctx context.Context, of place, write func(io.Writer) error) error
	// LoadCheckpoint reads a part of the checkpoint of a place, from 0. The error is fs.ErrNotExist
	// where there is none, or none that goes with the rows:
	//   - if there are rows of another API version, which a run that was cut off has left, the
	//     checkpoint may be older than they are;
	//   - if there are no rows, a user may have deleted them so that they are fetched again, and a
	//     list of a set that is presumably empty costs no more than a watch.
	LoadCheckpoint(ctx context.Context, of place, part int) ([]byte, error)
	// Versions calls visit with every row of a place, in no order, without its object.
	Versions(ctx context.Context, of place, visit func(row) error) error
	// Objects calls visit with the rows of a place that have one of the names, or with all if names
	// is nil, in no order.
	Objects(ctx context.Context, of place, names []cache.ObjectName, visit func(row) error) error
	// Resources returns the resources of the cluster that have rows, each in a version that a row
	// of it is in.
	Resources(ctx context.Context, cluster string) ([]schema.GroupVersionResource, error)

	// Canonical reports whether the objects are to come in the form of encode.
	Canonical() bool
	// Writers is how many calls of Apply and SaveCheckpoint may be made at once.
	Writers() int
	// Name is for messages: without a password.
	Name() string
	Close() error
}
