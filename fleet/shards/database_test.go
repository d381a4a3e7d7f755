package shards_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

// database is a model of the sink: rows, a checkpoint and an epoch for each unit, in transactions.
type database struct {
	t *testing.T

	mu      sync.Mutex
	tables  map[fleet.Unit]*table
	written int // transactions
	refused int // those of an older epoch
}

// table is what the database has of a unit.
type table struct {
	epoch int64
	// writers are the replicas that have written under each epoch. There may be one for each.
	writers    map[int64]string
	rows       map[string]row
	checkpoint []byte
	saved      bool
}

type row struct{ uid, version, value string }

func newDatabase(t *testing.T) *database { return &database{t: t, tables: map[fleet.Unit]*table{}} }

// staleError is what the database says to a transaction of an older epoch.
type staleError struct{ stored int64 }

func (e staleError) Error() string { return fmt.Sprintf("epoch %d is stored", e.stored) }

// commit runs a transaction under an epoch that was claimed before, or claims it.
func (d *database) commit(writer string, u fleet.Unit, epoch int64, claims bool, do func(*table)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tables[u]
	if t == nil {
		t = &table{writers: map[int64]string{}, rows: map[string]row{}}
		d.tables[u] = t
	}
	if epoch < t.epoch || epoch > t.epoch && !claims {
		d.refused++
		return staleError{t.epoch}
	}
	if before, ok := t.writers[epoch]; ok && before != writer {
		d.t.Errorf("%s writes %s under epoch %d, as %s has done", writer, u, epoch, before)
	}
	d.written++
	t.epoch, t.writers[epoch] = epoch, writer
	do(t)
	return nil
}

// epochs counts the epochs under which something was written.
func (d *database) epochs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, t := range d.tables {
		n += len(t.writers)
	}
	return n
}

// rowsOf are the rows of a unit.
func (d *database) rowsOf(u fleet.Unit) map[string]row {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tables[u] == nil {
		return nil
	}
	return maps.Clone(d.tables[u].rows)
}

// sink writes one unit to the database, for one replica. It is a handler and a checkpoint store.
type sink struct {
	db     *database
	unit   fleet.Unit
	writer string
	epoch  int64
	// disk lies between the replica and the database; it fails when the replica is dead.
	disk func(commit func() error) error

	mu sync.Mutex
	// appended counts the bytes that were appended since a Save has begun; -1 while none is under
	// way.
	appended int
}

func (s *sink) commit(ctx context.Context, do func(*table)) error { return s.transact(ctx, false, do) }

func (s *sink) transact(ctx context.Context, claims bool, do func(*table)) error {
	err := s.disk(func() error { return s.db.commit(s.writer, s.unit, s.epoch, claims, do) })
	if stale, ok := err.(staleError); ok {
		return shards.StaleEpoch(ctx, stale.stored)
	}
	return err
}

// OnBatch writes a batch in one transaction.
func (s *sink) OnBatch(ctx context.Context, events []informer.Event) error {
	for _, e := range events {
		if e.Epoch != s.epoch {
			return fmt.Errorf("the event has epoch %d, not %d", e.Epoch, s.epoch)
		}
	}
	return s.commit(ctx, func(t *table) {
		for _, e := range events {
			apply(t.rows, e)
		}
	})
}

func apply(rows map[string]row, e informer.Event) {
	if e.Type == informer.Deleted {
		// By key: after a crash, the deletion of an object that was made anew and deleted meanwhile
		// is told of the one before it.
		delete(rows, e.Key)
		return
	}
	rows[e.Key] = rowOf(e.Object.(*unstructured.Unstructured))
}

func rowOf(u *unstructured.Unstructured) row {
	value, _, _ := unstructured.NestedString(u.Object, "data", "value")
	return row{uid: string(u.GetUID()), version: u.GetResourceVersion(), value: value}
}

// Load claims the unit, and returns its checkpoint, in one transaction.
func (s *sink) Load(ctx context.Context) (io.ReadCloser, error) {
	var b []byte
	saved := false
	if err := s.transact(ctx, true, func(t *table) { b, saved = slices.Clone(t.checkpoint), t.saved }); err != nil {
		return nil, err
	}
	if !saved {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (s *sink) Save(ctx context.Context, write func(io.Writer) error) error {
	var b bytes.Buffer
	var tail []byte // appended meanwhile
	err := s.commit(ctx, func(t *table) { s.begin() })
	if err != nil {
		return err
	}
	err = write(&b)
	if err != nil {
		s.end()
		return err
	}
	return s.commit(ctx, func(t *table) {
		tail = t.checkpoint[len(t.checkpoint)-s.end():]
		t.checkpoint, t.saved = append(b.Bytes(), tail...), true
	})
}

func (s *sink) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appended = 0
}

// end returns how much was appended since begin.
func (s *sink) end() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.appended
	s.appended = -1
	return max(n, 0)
}

func (s *sink) Append(ctx context.Context, b []byte) error {
	return s.commit(ctx, func(t *table) {
		t.checkpoint = append(t.checkpoint, b...)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.appended >= 0 {
			s.appended += len(b)
		}
	})
}

func (s *sink) Sync(context.Context) error { return nil }

var (
	_ informer.CheckpointStore    = (*sink)(nil)
	_ informer.CheckpointAppender = (*sink)(nil)
	_ informer.BatchHandler       = (*sink)(nil)
)
