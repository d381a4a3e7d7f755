package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"github.com/gofrs/flock"
	"github.com/rvinformer/informer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	_ "modernc.org/sqlite" // the driver "sqlite", in pure Go
)

// The group is part of the key, the version is not: apps/v1beta1 and apps/v1 show the same objects.
//
// The index repeats the key, the UID and the resource version, so that a start reads these few
// bytes per object and not the pages that hold the objects themselves.
const createTable = `
CREATE TABLE IF NOT EXISTS objects (
	cluster          TEXT NOT NULL,
	"group"          TEXT NOT NULL,
	version          TEXT NOT NULL,
	resource         TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	name             TEXT NOT NULL,
	uid              TEXT NOT NULL,
	resource_version TEXT NOT NULL,
	object           TEXT NOT NULL,
	PRIMARY KEY (cluster, "group", resource, namespace, name)
) STRICT;
CREATE INDEX IF NOT EXISTS objects_versions
	ON objects (cluster, "group", resource, version, namespace, name, uid, resource_version);`

const (
	ofResource = `WHERE cluster = ? AND "group" = ? AND resource = ?`

	putStatement = `
INSERT INTO objects (cluster, "group", version, resource, namespace, name, uid, resource_version, object)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (cluster, "group", resource, namespace, name) DO UPDATE SET
	version = excluded.version, uid = excluded.uid, resource_version = excluded.resource_version, object = excluded.object`

	removeStatement = `DELETE FROM objects ` + ofResource + ` AND namespace = ? AND name = ?`
)

// sqliteFile is a SQLite file. Any number of goroutines may read; Apply belongs to the writer
// alone.
type sqliteFile struct {
	path    string
	lock    *flock.Flock
	writing *sql.DB // one connection: SQLite has one writer at a time, and pragmas belong to a connection
	reading *sql.DB
	put     *sql.Stmt
	remove  *sql.Stmt

	sound    context.Context // see Sound
	unusable context.CancelCauseFunc
}

// openSQLite opens the file at path, and makes it and its tables where they are missing. The error
// is an *unusableError where the file is damaged, or another program's.
//
// With a write-ahead log, readers (the start of another resource, a user's sqlite3) never block the
// writer. synchronous NORMAL may lose the last transactions to a power failure, never half of one;
// the next start fetches them again.
func openSQLite(ctx context.Context, path string) (_ *sqliteFile, err error) {
	pragmas := url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(wal)", "synchronous(normal)", "journal_size_limit(16777216)"},
		"_txlock": {"immediate"},
	}
	name := fileName(path, pragmas)

	d := &sqliteFile{path: path, lock: flock.New(path + ".lock")}
	d.sound, d.unusable = context.WithCancelCause(context.Background())
	defer func() {
		if err != nil {
			err = fmt.Errorf("database %s: %w", path, errors.Join(unlessDamaged(path, err), d.Close()))
		}
	}()
	if err = checkOwner(ctx, path); err != nil {
		return nil, err
	}
	if err = d.acquire(); err != nil {
		return nil, err
	}
	if d.writing, err = sql.Open("sqlite", name); err != nil {
		return nil, err
	}
	d.writing.SetMaxOpenConns(1)
	if err = d.createTables(ctx); err != nil {
		return nil, fmt.Errorf("cannot create its tables: %w", err)
	}
	if d.put, err = d.writing.PrepareContext(ctx, putStatement); err != nil {
		return nil, err
	}
	if d.remove, err = d.writing.PrepareContext(ctx, removeStatement); err != nil {
		return nil, err
	}
	if d.reading, err = sql.Open("sqlite", name); err != nil {
		return nil, err
	}
	d.reading.SetMaxOpenConns(2)
	return d, nil
}

var _ database = (*sqliteFile)(nil)

// String names the file.
func (d *sqliteFile) String() string { return d.path }

// Writers is one: SQLite has one writer at a time.
func (d *sqliteFile) Writers() int { return 1 }

// TakesRaw is false: equal objects are to be equal texts.
func (d *sqliteFile) TakesRaw() bool { return false }

// Sound ends when the file is found to be damaged.
func (d *sqliteFile) Sound() context.Context { return d.sound }

// acquire locks the file for this process, as long as it lives. SQLite would let two mirrors write
// in turns, but then the one that lags would put back what the other, and its checkpoints, know to
// be gone.
func (d *sqliteFile) acquire() error {
	locked, err := d.lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another mirror writes to it")
	}
	return err
}

// createTables makes the tables and the mark that they are mirror's, all or nothing: checkOwner
// sees both or none.
func (d *sqliteFile) createTables(ctx context.Context) error {
	return d.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, createTable+createCheckpoints+fmt.Sprintf("PRAGMA application_id = %d;", applicationID))
		return err
	})
}

// Close also folds the write-ahead log into the file.
func (d *sqliteFile) Close() error {
	d.unusable(nil)
	var errs []error
	for _, statement := range []*sql.Stmt{d.put, d.remove} {
		if statement != nil {
			errs = append(errs, statement.Close())
		}
	}
	for _, pool := range []*sql.DB{d.reading, d.writing} { // the last one closed does the checkpoint
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(append(errs, d.lock.Unlock())...) // its file stays: a new one could be locked by two
}

// Apply writes all the changes, in order and in one transaction, or none of them. An object and its
// resource version are in the same row: what the file says was seen is what it holds.
func (d *sqliteFile) Apply(ctx context.Context, changes []change) error {
	return d.transact(ctx, func(tx *sql.Tx) error {
		put, remove := tx.StmtContext(ctx, d.put), tx.StmtContext(ctx, d.remove)
		for _, c := range changes {
			if err := applyOne(ctx, tx, put, remove, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// transact commits what f does, or undoes it if f fails or panics.
func (d *sqliteFile) transact(ctx context.Context, f func(*sql.Tx) error) (err error) {
	defer func() { err = d.checked(err) }()
	tx, err := d.writing.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	complete := false
	defer func() {
		if complete {
			return
		}
		// SQLite has already rolled back by itself after a full disk; a second error would say only
		// that.
		if undone := tx.Rollback(); undone != nil && !errors.Is(undone, sql.ErrTxDone) {
			err = fmt.Errorf("%w (and the transaction was not rolled back: %w)", err, undone)
		}
	}()
	if err := f(tx); err != nil {
		return err
	}
	complete = true
	return tx.Commit()
}

func applyOne(ctx context.Context, tx *sql.Tx, put, remove *sql.Stmt, c change) (err error) {
	cluster, r := c.place.cluster, c.place.resource
	switch c.kind {
	case putRow:
		_, err = put.ExecContext(ctx, cluster, r.Group, r.Version, r.Resource, c.namespace, c.name, c.uid, c.resourceVersion, c.object)
	case removeRow:
		_, err = remove.ExecContext(ctx, cluster, r.Group, r.Resource, c.namespace, c.name)
	case dropOldVersions:
		_, err = tx.ExecContext(ctx, `DELETE FROM objects `+ofResource+` AND version <> ?`, cluster, r.Group, r.Resource, r.Version)
	case dropResource:
		for _, table := range []string{"objects", "checkpoints"} {
			if _, err = tx.ExecContext(ctx, `DELETE FROM `+table+` `+ofResource, cluster, r.Group, r.Resource); err != nil {
				break
			}
		}
	default:
		err = fmt.Errorf("unknown kind of change %d", c.kind)
	}
	return err
}

// Seed adds what the file knows of one resource to an informer's storage: name, UID and resource
// version of every object. It holds one row at a time.
//
// Rows of another API version are left out: their objects are to be fetched again in this one.
func (d *sqliteFile) Seed(ctx context.Context, storage *informer.ResourceVersionStorage, of place) error {
	r := of.resource
	rows, err := d.reading.QueryContext(ctx,
		`SELECT namespace, name, uid, resource_version FROM objects `+ofResource+` AND version = ?`,
		of.cluster, r.Group, r.Resource, r.Version)
	if err != nil {
		return d.unread("resource versions", of, err)
	}
	defer rows.Close()

	var known metav1.ObjectMeta
	for rows.Next() {
		if err := rows.Scan(&known.Namespace, &known.Name, &known.UID, &known.ResourceVersion); err != nil {
			return d.unread("resource versions", of, err)
		}
		if err := storage.Add(&metav1.PartialObjectMetadata{ObjectMeta: known}); err != nil {
			return d.unread("resource versions", of, err)
		}
	}
	if err := rows.Err(); err != nil {
		return d.unread("resource versions", of, err)
	}
	return nil
}

// unread is the error for what could not be read.
func (d *sqliteFile) unread(what string, of place, err error) error {
	return fmt.Errorf("database %s: reading the %s of %s: %w", d.path, what, of, d.checked(err))
}

// checked is unlessDamaged, and ends sound where the file is damaged.
func (d *sqliteFile) checked(err error) error {
	err = unlessDamaged(d.path, err)
	if isUnusable(err) {
		d.unusable(fmt.Errorf("database %s: %w", d.path, err))
	}
	return err
}

// Resources returns the resources of the cluster that have rows, each in a version that a row of it
// is in.
func (d *sqliteFile) Resources(ctx context.Context, cluster string) ([]schema.GroupVersionResource, error) {
	rows, err := d.reading.QueryContext(ctx, `SELECT "group", min(version), resource FROM objects WHERE cluster = ? GROUP BY "group", resource`, cluster)
	if err != nil {
		return nil, d.unread("resources", place{cluster: cluster}, err)
	}
	defer rows.Close()

	var resources []schema.GroupVersionResource
	for rows.Next() {
		var r schema.GroupVersionResource
		if err := rows.Scan(&r.Group, &r.Version, &r.Resource); err != nil {
			return nil, d.unread("resources", place{cluster: cluster}, err)
		}
		resources = append(resources, r)
	}
	if err := rows.Err(); err != nil {
		return nil, d.unread("resources", place{cluster: cluster}, err)
	}
	return resources, nil
}

// Objects calls visit with every row of one resource, in no order. It holds one row at a time.
func (d *sqliteFile) Objects(ctx context.Context, of place, visit func(change) error) error {
	r := of.resource
	rows, err := d.reading.QueryContext(ctx,
		`SELECT namespace, name, uid, resource_version, object FROM objects `+ofResource, of.cluster, r.Group, r.Resource)
	if err != nil {
		return d.unread("objects", of, err)
	}
	defer rows.Close()

	for rows.Next() {
		row := change{kind: putRow, place: of}
		if err := rows.Scan(&row.namespace, &row.name, &row.uid, &row.resourceVersion, &row.object); err != nil {
			return d.unread("objects", of, err)
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return d.unread("objects", of, err)
	}
	return nil
}
