package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// applicationID marks a SQLite file as this package's: the letters "mirr". The user_version is the
// version of its tables, and 0 means 1.
const applicationID = 0x6d697272

// sqliteTables has the versions of the tables. The text that made the table has the definitions of its
// columns.
//
//  1. The group is part of the key, the version is not: apps/v1beta1 and apps/v1 show the same
//     objects. The index repeats the key, the UID and the resource version, so that a start reads
//     these few bytes per object and not the pages that hold the objects themselves. There is a
//     checkpoint of each resource, in parts. Some files of version 1 have no checkpoints yet.
//  2. The epochs of units.
var sqliteTables = tables{
	mark: fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %%d`, applicationID),
	defined: `SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = 'objects'
		AND EXISTS (SELECT 1 FROM pragma_table_xinfo('objects') WHERE name = $1)`,
	define: Column.sqlite,
	add:    addSQLiteColumns, misfits: removeSQLiteMisfits,
	formats: []string{`
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
	ON objects (cluster, "group", resource, version, namespace, name, uid, resource_version);
CREATE TABLE IF NOT EXISTS checkpoints (
	cluster    TEXT NOT NULL,
	"group"    TEXT NOT NULL,
	resource   TEXT NOT NULL,
	part       INTEGER NOT NULL,
	version    TEXT NOT NULL,
	server     TEXT NOT NULL,
	data       BLOB NOT NULL,
	PRIMARY KEY (cluster, "group", resource, part)
) STRICT;`, `
CREATE TABLE units (unit TEXT PRIMARY KEY, epoch INTEGER NOT NULL) STRICT;`},
}

// ownTables fails for tables that are not this package's. A column needs its table before it:
// SQLite takes an unknown "group" alone for a string.
const ownTables = `SELECT o.cluster, o."group", o.version, o.resource, o.namespace, o.name, o.uid, o.resource_version, o.object, c.data
	FROM objects AS o, checkpoints AS c LIMIT 0`

// checkOwner returns an *UnusableError where the file at path belongs to another program, or to a
// newer version of this one. It only reads, so that such a file stays as it is.
func checkOwner(ctx context.Context, path string) error {
	pool, err := sql.Open("sqlite", fileName(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}))
	if err != nil {
		return err
	}
	defer pool.Close()

	var mark, format, tables int
	err = pool.QueryRowContext(ctx, `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version`).
		Scan(&mark, &format, &tables)
	switch {
	case resultCode(err) == sqlite3.SQLITE_NOTADB:
		return &UnusableError{"it is no SQLite database, or its first page is damaged",
			"it was not changed: name another file, or delete it to have it filled from the clusters"}
	case err != nil:
		return err
	case mark == applicationID && format > len(sqliteTables.formats):
		return errNewerFormat(strconv.Itoa(format), len(sqliteTables.formats))
	case mark == applicationID, mark == 0 && tables == 0 && format == 0:
		return nil
	case mark == 0 && format <= len(sqliteTables.formats): // perhaps made before files were marked
		rows, err := pool.QueryContext(ctx, ownTables)
		if err == nil {
			return rows.Close()
		}
	}
	return &UnusableError{"it is a database of another program", "it was not changed: name another file"}
}

func addSQLiteColumns(missing []Column) (statements string) {
	for _, c := range missing {
		statements += `ALTER TABLE objects ADD COLUMN ` + c.sqlite() + ";"
	}
	return statements
}

// removeSQLiteMisfits brings the values to a column that takes all, and converts them as the one of the
// table would.
func removeSQLiteMisfits(ctx context.Context, tx *sql.Tx, columns []Column) (all []misfit, err error) {
	for _, c := range columns {
		kind := c.kind().sqlite
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(`DROP TABLE IF EXISTS temp.misfits; CREATE TABLE temp.misfits (at INTEGER PRIMARY KEY, value %s, odd INTEGER);
			INSERT INTO temp.misfits SELECT rowid, value, odd FROM (SELECT rowid, %s AS value, %s AS odd FROM objects) WHERE value IS NOT NULL`,
			kind, c.sqliteValue(), c.sqliteMisfit())); err != nil {
			return nil, err
		}
		found, err := readMisfits(ctx, tx, fmt.Sprintf(`DELETE FROM objects WHERE rowid IN (SELECT at FROM temp.misfits WHERE odd OR typeof(value) <> lower('%s'))
			RETURNING cluster, "group", resource, namespace, name, 'column %s: this is no %s: ' || (object ->> %s)`,
			kind, c.Name, c.Type, sqlitePath(c.Path)))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	_, err = tx.ExecContext(ctx, `DROP TABLE IF EXISTS temp.misfits`)
	return all, err
}

// fileName is the name of the file at path for the driver.
func fileName(path string, parameters url.Values) string {
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: parameters.Encode()}).String()
}

// unlessDamaged returns err, or an *UnusableError instead where err means that the file at path is
// damaged.
func unlessDamaged(path string, err error) error {
	switch resultCode(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return &UnusableError{
			Reason: fmt.Sprintf("it is damaged (%v)", err),
			Remedy: fmt.Sprintf("delete it, with %[1]s-wal and %[1]s-shm, and the next start fills a new one from the clusters", path),
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
