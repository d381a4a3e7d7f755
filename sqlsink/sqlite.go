package sqlsink

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	_ "modernc.org/sqlite" // the driver "sqlite", in pure Go
)

// sqliteFile is a SQLite file. Any number of goroutines may read; SQLite has one writer at a time.
type sqliteFile struct {
	path    string
	lock    *flock.Flock
	writing *sql.DB // one connection: pragmas belong to a connection
	reading *sql.DB
	put     *sql.Stmt
	remove  *sql.Stmt
}

var _ database = (*sqliteFile)(nil)

// realPath is the one name of a file that may have others. It makes an empty file where none is, with
// the rights that SQLite would give it. It does not open a file that is there: to close that would
// end the locks that SQLite has on it in this process.
func realPath(path string) (string, error) {
	file, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		err = made.Close()
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// openSQLite opens the file at path, and makes it and its tables where they are missing. The error
// is an *UnusableError where the file is damaged, or another program's.
//
// With a write-ahead log, readers (the start of another resource, a user's sqlite3) never block the
// writer. synchronous NORMAL may lose the last transactions to a power failure, never half of one;
// the next start fetches them again.
func openSQLite(ctx context.Context, path string, columns []Column) (_ *sqliteFile, err error) {
	name := fileName(path, url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(wal)", "synchronous(normal)", "journal_size_limit(16777216)"},
		"_txlock": {"immediate"},
	})
	file, err := realPath(path)
	if err != nil {
		return nil, err
	}
	d := &sqliteFile{path: path, lock: flock.New(file + ".lock")}
	defer func() {
		if err != nil {
			err = errors.Join(unlessDamaged(path, err), d.Close())
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
	if err = d.transact(ctx, func(tx *sql.Tx) error { return prepareSQLite(ctx, tx, columns) }); err != nil {
		return nil, err
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

// Name is the path of the file.
func (d *sqliteFile) Name() string { return d.path }

// Writers is one: SQLite has one writer at a time.
func (d *sqliteFile) Writers() int { return 1 }

// Canonical is true: equal objects are to be equal texts.
func (d *sqliteFile) Canonical() bool { return true }

// acquire locks the file for this process, as long as it lives. SQLite would let two writers write
// in turns, but then the one that lags would put back what the other, and its checkpoints, know to
// be gone.
func (d *sqliteFile) acquire() error {
	locked, err := d.lock.TryLock()
	if err == nil && !locked {
		err = errAnotherWriter
	}
	return err
}

// Close also folds the write-ahead log into the file.
func (d *sqliteFile) Close() error {
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

// transact commits what f does, or undoes it if f fails or panics.
func (d *sqliteFile) transact(ctx context.Context, f func(*sql.Tx) error) (err error) {
	defer func() { err = unlessDamaged(d.path, err) }()
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

// each calls visit for each row of a query, and closes it.
func (d *sqliteFile) each(ctx context.Context, query string, arguments []any, visit func(*sql.Rows) error) (err error) {
	defer func() { err = unlessDamaged(d.path, err) }()
	rows, err := d.reading.QueryContext(ctx, query, arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Versions reads what the rows of a place say that was seen.
func (d *sqliteFile) Versions(ctx context.Context, of place, visit func(row) error) error {
	return d.each(ctx, `SELECT namespace, name, uid, version, resource_version FROM objects `+ofResource, resourceArguments(of), func(rows *sql.Rows) error {
		var r row
		if err := rows.Scan(&r.namespace, &r.name, &r.uid, &r.version, &r.resourceVersion); err != nil {
			return err
		}
		return visit(r)
	})
}

// Objects reads rows of a place. The names are one argument, as JSON.
func (d *sqliteFile) Objects(ctx context.Context, of place, names []cache.ObjectName, visit func(row) error) error {
	query, arguments := `SELECT namespace, name, uid, version, resource_version, object FROM objects `+ofResource, resourceArguments(of)
	if names != nil {
		text, err := json.Marshal(names)
		if err != nil {
			return err
		}
		query += ` AND (namespace, name) IN (SELECT value ->> 'Namespace', value ->> 'Name' FROM json_each(?))`
		arguments = append(arguments, string(text))
	}
	return d.each(ctx, query, arguments, func(rows *sql.Rows) error {
		var r row
		if err := rows.Scan(&r.namespace, &r.name, &r.uid, &r.version, &r.resourceVersion, &r.object); err != nil {
			return err
		}
		return visit(r)
	})
}

// Resources returns the resources that have rows.
func (d *sqliteFile) Resources(ctx context.Context, cluster string) (resources []schema.GroupVersionResource, err error) {
	err = d.each(ctx, `SELECT "group", min(version), resource FROM objects WHERE cluster = ? GROUP BY "group", resource`, []any{cluster}, func(rows *sql.Rows) error {
		var r schema.GroupVersionResource
		if err := rows.Scan(&r.Group, &r.Version, &r.Resource); err != nil {
			return err
		}
		resources = append(resources, r)
		return nil
	})
	return resources, err
}
