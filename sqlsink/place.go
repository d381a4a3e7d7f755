package sqlsink

import (
	"context"
	"strings"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// place is one resource of one cluster, or a shard of it: what one informer follows.
type place struct {
	unit     fleet.Unit
	resource schema.GroupVersionResource
}

func (p place) String() string {
	text := strings.TrimSuffix(p.unit.Cluster+" "+p.resource.GroupResource().String(), " ")
	if !p.unit.Shard.IsAll() {
		text += " " + p.unit.Shard.String()
	}
	return text
}

// Place is one resource of one cluster in the database, or a shard of it: what one informer writes, with
// one namespace and one selector. While an informer runs with its Checkpoint, a second one waits, and its
// Status has ErrCheckpointInUse. One of another namespace or selector waits also after that, with
// ErrCheckpointSource. Namespaces that have informers of their own need clusters of their own names.
type Place struct {
	sink *Sink
	at   place
}

// Place returns the place of a resource. The version is the one that the informer follows: the
// tables have rows of one version, and others are fetched anew.
func (s *Sink) Place(cluster string, resource schema.GroupVersionResource) Place {
	return Place{s, place{fleet.Unit{Cluster: cluster}, resource}}
}

// Target returns the place of a target of a fleet. The epoch of its unit fences all its writes.
func (s *Sink) Target(t fleet.Target) Place { return Place{s, place{t.Unit, t.Resource}} }

// Handler is Place(cluster, resource).Handler().
func (s *Sink) Handler(cluster string, resource schema.GroupVersionResource) informer.BatchHandler {
	return s.Place(cluster, resource).Handler()
}

// Checkpoint is Place(cluster, resource).Checkpoint().
func (s *Sink) Checkpoint(cluster string, resource schema.GroupVersionResource) informer.CheckpointStore {
	return s.Place(cluster, resource).Checkpoint()
}

// String is for messages: "east deployments.apps".
func (p Place) String() string { return p.at.String() }

// Handler returns a handler that makes each batch a transaction. It takes RawObjects in JSON,
// *unstructured.Unstructured, and objects of any type that json.Marshal writes as the API server
// would. It ignores events of type Synced.
//
// Its error is FailedEvents for rows that the database refuses, with the words of the database, and
// all others of the batch are committed then. A row that the database does not write now, because
// another session has locked it for instance, is one that comes Later. Any other error means that
// nothing was written, and wraps that of the driver, such as a *pgconn.PgError.
func (p Place) Handler() informer.BatchHandler {
	return informer.IgnoreSynced(informer.BatchHandlerFunc(p.onBatch))
}

// Checkpoint returns the store of the checkpoint of the place: in the database, beside the rows. One informer
// uses it at a time.
func (p Place) Checkpoint() informer.CheckpointStore { return checkpoint{p} }

// otherVersion is the resource version of rows that are to be replaced: older than any, so that
// their objects are delivered again or deleted. Such are the rows of another API version, and two
// rows of one name: of an object that was deleted and created again, in two shards that are one
// now.
const otherVersion = "0"

// Storage returns what the rows say that was seen: name, UID and resource version of each object. An
// informer that begins with it delivers what differs, deletions included. A context with an epoch
// claims the unit of the place before.
func (p Place) Storage(ctx context.Context) (*informer.ResourceVersionStorage, error) {
	if err := p.sink.claim(ctx, p.at); err != nil {
		return nil, p.sink.unread(ctx, "resource versions", p.at, err)
	}
	storage := informer.NewResourceVersionStorage()
	err := p.sink.db.Versions(ctx, p.at, func(r row) error {
		if r.version != p.at.resource.Version {
			r.resourceVersion = otherVersion
		}
		known := storage.Len()
		seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Name: r.name, UID: types.UID(r.uid), ResourceVersion: r.resourceVersion}}
		err := storage.Add(seen)
		if err == nil && storage.Len() == known { // it has another row
			seen.ResourceVersion = otherVersion
			err = storage.Add(seen)
		}
		return err
	})
	return storage, p.sink.unread(ctx, "resource versions", p.at, err)
}

// Objects calls visit with the object of every row, in no order, and holds one at a time. It ends
// with the first error of visit.
func (p Place) Objects(ctx context.Context, visit func(*unstructured.Unstructured) error) error {
	var failed error
	err := p.sink.db.Objects(ctx, p.at, nil, func(r row) error {
		object, err := r.decode()
		if err == nil {
			failed = visit(object)
			err = failed
		}
		return err
	})
	if failed != nil {
		return failed
	}
	return p.sink.unread(ctx, "objects", p.at, err)
}
