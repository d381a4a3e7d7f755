package main

import (
	"context"
	"io"

	"github.com/rvinformer/informer"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// database is where the objects go: a row for each, with its resource version, and beside the rows
// how far each place is complete. All methods may be called side by side; those of a store as often
// at once as Writers says, and for the same object one after the other.
//
// A context with an epoch (informer.WithEpoch) says that the place may have had, or get, another
// owner. Seed and LoadCheckpoint claim the unit of the place with it, and come before any write.
// From then on nothing of another epoch is written: a write under one gets a *staleEpochError.
type database interface {
	store

	// Seed adds what the rows of a place say that was seen to an informer's storage: name, UID and
	// resource version of every object in the place's API version. Rows of another version are left
	// out: their objects are to be fetched again.
	Seed(ctx context.Context, storage *informer.ResourceVersionStorage, of place) error
	// LoadCheckpoint reads the checkpoint of a place. It is fs.ErrNotExist where there is none, or
	// none that goes with the rows:
	//   - if there are rows of another API version, which a run that was cut off has left, the
	//     checkpoint may be older than they are;
	//   - if there are no rows, a user may have deleted them so that they are fetched again, and a
	//     list of a set that is presumably empty costs no more than a watch.
	LoadCheckpoint(ctx context.Context, of place) (io.ReadCloser, error)
	// Objects calls visit with every row of a place, in no order, as a change of kind putRow. It
	// holds one row at a time.
	Objects(ctx context.Context, of place, visit func(change) error) error
	// Resources returns the resources of the cluster that have rows, each in a version that a row
	// of it is in.
	Resources(ctx context.Context, cluster string) ([]schema.GroupVersionResource, error)

	// TakesRaw reports whether the objects may come as they are on the wire. Otherwise they come in
	// the form of encode.
	TakesRaw() bool
	// Writers is how many calls of Apply and SaveCheckpoint may be made at once.
	Writers() int
	// Sound ends when the database is found to be unusable, with the *unusableError that says so as
	// its cause.
	Sound() context.Context
	// String names the database in messages: without a password.
	String() string
	Close() error
}

// store takes changes, or a checkpoint, all or nothing. It is the database; tests put a failing one
// in its place.
type store interface {
	// Apply writes all the changes, in order and in one transaction, or none of them. It writes the
	// same again without harm.
	Apply(ctx context.Context, changes []change) error
	// SaveCheckpoint keeps what write writes as the checkpoint of a place, instead of the one
	// before.
	SaveCheckpoint(ctx context.Context, of place, server string, write func(io.Writer) error) error
}
