package follow

import (
	"context"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/sqlsink"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Database is where the objects go: a Sink.
type Database interface {
	Place(t fleet.Target) Place
	Known(ctx context.Context, u fleet.Unit) ([]schema.GroupVersionResource, error)
	Writers() int
	Context(parent context.Context) context.Context
	Err() error
	String() string
}

// Place is what one informer writes: a sqlsink.Place.
type Place interface {
	Storage(ctx context.Context) (*informer.ResourceVersionStorage, error)
	Handler() informer.BatchHandler
	Checkpoint() informer.CheckpointStore
}

// Sink makes a Database of that of sqlsink.
type Sink struct{ *sqlsink.Sink }

// Place returns the place of a target.
func (s Sink) Place(t fleet.Target) Place { return s.Target(t) }
