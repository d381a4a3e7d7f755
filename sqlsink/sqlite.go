package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the driver "sqlite", in pure Go
)

// sqliteFile is a SQLite file. Any number of goroutines may read; SQLite has one writer at a time.
type sqliteFile struct {
	reader
	lock    *flock.Flock
	columns []Column
	reign   int64   // grows with each writer: see check
	writing *sql.DB // one connection: pragmas belong to a connection
	put     *sql.Stmt
	remove  *sql.Stmt
}

// realPath is the one name of a file that may have others. It makes an empty file where none is, for its
// owner alone, because it may come to hold Secrets; SQLite gives its log the same rights. It does not open a file that is there: to close that would
// end the locks that SQLite has on it in this process.
func realPath(path string) (string, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return "", err
		}
		_ = made.Close() // nothing was written
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
	d := &sqliteFile{lock: flock.New(file + ".lock"), columns: columns, reader: reader{ofPlace: ofResource, ofCheckpoint: ofResource, others: otherVersions,
		named: ofResource + ` AND (namespace, name) IN (SELECT value ->> 'Namespace', value ->> 'Name' FROM json_each($8))`, object: `object`}}
	if d.writing, err = sql.Open("sqlite", name); err != nil {
		return nil, err
	}
	if d.db, err = sql.Open("sqlite", name); err != nil {
		return nil, err
	}
	d.writing.SetMaxOpenConns(1)
	d.db.SetMaxOpenConns(2)
	defer func() {
		if err != nil {
			err = errors.Join(unlessDamaged(path, err), d.Close())
		}
	}()
	if err = checkOwner(ctx, path); err != nil {
		return nil, err
	}
	// SQLite would let two writers write in turns, but then the one that lags would put back what the
	// other, and its checkpoints, know to be gone.
	switch locked, err := d.lock.TryLock(); {
	case err != nil:
		return nil, err
	case !locked:
		return nil, ErrAnotherWriter
	}
	err = transact(ctx, d.writing, func(tx *sql.Tx) error {
		var format int
		if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&format); err != nil {
			return err
		}
		if err := sqliteTables.Prepare(ctx, tx, format, columns); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `INSERT INTO units (unit, epoch) VALUES ($1, 1)
			ON CONFLICT (unit) DO UPDATE SET epoch = epoch + 1 RETURNING epoch`, allUnits).Scan(&d.reign)
	})
	if err == nil {
		d.put, err = d.writing.PrepareContext(ctx, putStatement)
	}
	if err == nil {
		d.remove, err = d.writing.PrepareContext(ctx, removeStatement)
	}
	return d, err
}

// Close also folds the write-ahead log into the file.
func (d *sqliteFile) Close() error {
	// The last one closed does that. The file of the lock stays: a new one could be locked by two.
	return errors.Join(d.db.Close(), d.writing.Close(), d.lock.Unlock())
}
