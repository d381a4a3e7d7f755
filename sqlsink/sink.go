package sqlsink

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Sink is a database that informers write to. Its methods may be called side by side.
type Sink struct {
	name      string // the address without a password, or the path
	canonical bool   // objects are written with sorted keys; jsonb has one form by itself
	db        database
	// turns has room for the handlers that write. Those that wait for a turn get it in their order.
	turns  chan struct{}
	users  users
	shards int // of Config

	sound    context.Context // ends when the database is found to be unusable, or closed
	unusable context.CancelCauseFunc
}

// Open connects to a database, makes its tables where they are missing, brings those of older
// versions up to date, and adds the columns that it does not have.
//
// The error wraps an *UnusableError if the tables are those of another program or of a newer version
// of this package, if the columns do not go with them, if another writer has them, or if there is a
// pooler in between that gives sessions to other clients after each transaction. It is an
// *OtherShardsError while there are writers with another number of shards. Other errors are those
// of the driver: a server that is down, or refuses the account. Nothing of them has a password.
func Open(ctx context.Context, config Config) (_ *Sink, err error) {
	postgres, name, err := parseAddress(config.Address)
	if err != nil {
		return nil, fmt.Errorf("sqlsink: %w", err)
	}
	for i, c := range config.Columns {
		if err := c.check(config.Columns[:i]); err != nil {
			return nil, fmt.Errorf("sqlsink: %w", err)
		}
	}
	if config.Shards < 0 || config.Shards > 0 && postgres == nil {
		return nil, fmt.Errorf("sqlsink: Shards is %d: a file has one writer", config.Shards)
	}
	s := &Sink{name: name, shards: config.Shards, canonical: true, turns: make(chan struct{}, 1)} // SQLite has one writer at a time
	if postgres == nil {
		s.db, err = openSQLite(ctx, name, config.Columns)
	} else {
		s.canonical, s.turns = false, make(chan struct{}, postgres.MaxConns)
		s.db, err = openPostgres(ctx, postgres, config)
	}
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", s.name, err)
	}
	s.sound, s.unusable = context.WithCancelCause(context.Background())
	return s, nil
}

// String is the address of the database without a password, or the path of the file.
func (s *Sink) String() string { return s.name }

// Writers is how many transactions may be under way at once. An informer of a database with more
// than one may have two Workers: while one batch is committed, the next is brought there.
func (s *Sink) Writers() int { return cap(s.turns) }

// Context returns a context that ends with its parent, or when the database is found to be unusable,
// because it is damaged, another writer has it, or it has lost what it had acknowledged. Handlers go
// on to fail then, so informers run with it. Close ends it too.
func (s *Sink) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(s.sound, func() { cancel(context.Cause(s.sound)) })
	context.AfterFunc(ctx, func() { stop() })
	return ctx
}

// Err wraps the *UnusableError that says why the database is unusable. It is nil while it is not
// known to be, and after Close.
func (s *Sink) Err() error {
	if err := context.Cause(s.sound); isUnusable(err) {
		return err
	}
	return nil
}

// Close ends all connections. The informers have to have ended before.
func (s *Sink) Close() error {
	s.unusable(nil)
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("database %s: %w", s.name, err)
	}
	return nil
}

// Known returns the resources that have rows of the cluster, each in a version that a row of it is
// in. It is for fleet.Config.Known, and returns those of all units of the cluster: a unit without
// rows of one has nothing to delete.
func (s *Sink) Known(ctx context.Context, u fleet.Unit) ([]schema.GroupVersionResource, error) {
	resources, err := s.db.Resources(ctx, u.Cluster)
	return resources, s.unread(ctx, "resources", place{unit: fleet.Unit{Cluster: u.Cluster}}, err)
}

// checked returns err, or an *UnusableError for that of a damaged file. It ends sound if the
// database is unusable. If ctx has ended, the error has its cause too, because a driver says only
// that it was interrupted.
func (s *Sink) checked(ctx context.Context, err error) error {
	err = unlessDamaged(s.name, err)
	if isUnusable(err) {
		s.unusable(fmt.Errorf("database %s: %w", s.name, err))
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// claim claims a place. The error says that its shard is none of the Config's: the other writers would
// not know its rows for those of their shards.
func (s *Sink) claim(ctx context.Context, of place) error {
	if err := s.checkShard(of.unit.Shard); err != nil {
		return err
	}
	return s.db.Claim(ctx, of)
}

func (s *Sink) checkShard(of informer.Shard) error {
	if s.shards == 0 || of.IsAll() || slices.Contains(informer.Shard{Key: of.Key}.Split(s.shards), of) {
		return nil
	}
	return fmt.Errorf("the shard %s is none of %d, which is Config.Shards: give the fleet the same number", of, s.shards)
}

// unread is the error for what could not be read, and nil for none.
func (s *Sink) unread(ctx context.Context, what string, of place, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("database %s: reading the %s of %s: %w", s.name, what, of, s.checked(ctx, err))
}

// write makes one transaction when it is its turn.
func (s *Sink) write(ctx context.Context, of place, transaction func(context.Context) error) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
	}
	err := cmp.Or(ctx.Err(), s.checkShard(of.unit.Shard))
	if err == nil {
		if err = transaction(ctx); err == nil {
			return nil
		}
	}
	return fmt.Errorf("database %s: writing %s: %w", s.name, of, s.checked(ctx, err))
}
