package script

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
)

// Maker makes the informer that a script is about, each time that the script starts one.
type Maker func(Setup) (*Subject, error)

// Setup is what an informer is made from.
type Setup struct {
	Config
	// Client is for the server. It is the informer's own.
	Client *rest.Config
	// Resource is what it is to follow, in all namespaces. Its objects are pods to a scheme.
	Resource schema.GroupVersionResource
	// Dialect is what the server does otherwise than a kube-apiserver: it may leave an informer
	// without a version, or without a watch.
	Dialect informertest.Dialect
	// Mistyped is that a version may come in one content and later in another: an informer that keeps
	// objects tells of that.
	Mistyped bool
	// Handler is to be told, or, where Config.Batch is not 0 and the informer has batches,
	// BatchHandler.
	Handler      informer.ResourceEventHandler
	BatchHandler informer.BatchHandler
	// Storage is what the informers of a process share, empty in a new one.
	Storage *informer.ResourceVersionStorage
	// NewProcess is that no informer of this process has run yet: its handler knows of nothing but
	// what is in Storage.
	NewProcess bool
	// Checkpoint is nil where Config.Checkpoint is false. It fails as the script says.
	Checkpoint informer.CheckpointStore
	// Failed is to be told of each error that the informer reports, GaveUp of each key that it says
	// it will not try again.
	Failed func(error)
	GaveUp func(key string)
	// Shard is the part of the set to follow.
	Shard informer.Shard
	// Travelled reports whether the server was restored, and the informer has not settled since.
	Travelled func() bool
	// Unread reports whether something could not be read since a list was asked for.
	Unread func() bool
	// Stored is to be told, when BatchHandler is called, which version the store has of each key in
	// the batch, empty for none; see oracle.Oracle.Stored.
	Stored func(key, version string)
}

// Subject is an informer that is put to a script. Run and HasSynced are required. A function that
// is nil is for what the informer cannot tell, and the oracle does not judge it.
type Subject struct {
	// Run follows the resource until ctx ends. With "start again" it is called again, unless Once
	// is set: then another informer is made.
	Run       func(ctx context.Context)
	Once      bool
	HasSynced func() bool
	// Origin is what the next Run goes on from; it is called right before. Nil: from nothing.
	Origin func() (oracle.Run, error)
	// ResourceVersion is up to where everything is acknowledged, as the informer says; empty where
	// it does not, or says so of a part of its shard only.
	ResourceVersion func() string
	// Stored is what it has of each key: the resource version.
	Stored func() map[string]string
	// Memory is how many bytes wait, and how many may. When Run has returned, none is to wait.
	Memory func() (inUse, limit int64)
	// Followers is how many lists and watches of its own it may have at a time; 0: one.
	Followers int
	// Waiting is how many keys wait for the handler, or are with it.
	Waiting func() int
	// Audit compares the informer with its server.
	Audit func(ctx context.Context, opts informer.AuditOptions) (informer.AuditReport, error)
	// Redeliver has the informer tell of its objects again.
	Redeliver func(ctx context.Context, opts informer.RedeliverOptions) error
	// Idle is what is wrong with what the informer says of itself while all is quiet. Complete says
	// that nothing has been passed over or unreadable since it was made to list.
	Idle func(complete bool) error
}

// validate reports what a Maker has forgotten.
func (s *Subject) validate() error {
	switch {
	case s == nil:
		return errors.New("the Maker returned no Subject, and no error")
	case s.Run == nil:
		return errors.New("the Subject has no Run")
	case s.HasSynced == nil:
		return errors.New("the Subject has no HasSynced")
	}
	return nil
}
