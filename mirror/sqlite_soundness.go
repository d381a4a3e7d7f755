package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// applicationID marks a SQLite file as mirror's: the letters "mirr".
const applicationID = 0x6d697272

// ownTables fails for tables that are not mirror's. A column needs its table before it: SQLite
// takes an unknown "group" alone for a string.
const ownTables = `SELECT o.cluster, o."group", o.version, o.resource, o.namespace, o.name, o.uid, o.resource_version, o.object, c.data
	FROM objects AS o, checkpoints AS c LIMIT 0`

// checkOwner returns an *unusableError where the file at path belongs to another program. It only
// reads, so that such a file stays as it is.
func checkOwner(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	pool, err := sql.Open("sqlite", fileName(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}))
	if err != nil {
		return err
	}
	defer pool.Close()

	var mark, tables int
	err = pool.QueryRowContext(ctx, `SELECT application_id, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id`).Scan(&mark, &tables)
	switch {
	case resultCode(err) == sqlite3.SQLITE_NOTADB:
		return &unusableError{"it is no SQLite database, or its first page is damaged",
			"it was not changed: name another file with --db, or delete it to have it filled from the clusters"}
	case err != nil:
		return err
	case mark == applicationID, mark == 0 && tables == 0:
		return nil
	case mark == 0: // perhaps made before mirror marked its files
		rows, err := pool.QueryContext(ctx, ownTables)
		if err == nil {
			return rows.Close()
		}
	}
	return &unusableError{"it is a database of another program", "it was not changed: name another file with --db"}
}

// fileName is the name of the file at path for the driver.
func fileName(path string, parameters url.Values) string {
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: parameters.Encode()}).String()
}

// unlessDamaged returns err, or an *unusableError instead where err means that the file at path is
// damaged.
func unlessDamaged(path string, err error) error {
	switch resultCode(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return &unusableError{
			reason: fmt.Sprintf("it is damaged (%v)", err),
			remedy: fmt.Sprintf("delete it, with %[1]s-wal and %[1]s-shm, and the next start fills a new one from the clusters", path),
		}
	}
	return err
}

// resultCode is the primary code of SQLite's error, or SQLITE_OK where err is none.
func resultCode(err error) int {
	if failed := (*sqlite.Error)(nil); errors.As(err, &failed) {
		return failed.Code() & 0xff
	}
	return sqlite3.SQLITE_OK
}
