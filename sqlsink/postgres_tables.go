package sqlsink

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// postgresMark begins the comment on the table objects that says that it is this package's. The
// version of the tables follows.
const postgresMark = "rvinformer mirror, format "

// postgresTables has the versions of the tables:
//
//  1. A row belongs to the shard that its UID, or its namespace, is in, and only the owner of that
//     shard writes it. So the UID is a part of the key: an object that is deleted, and another one
//     that is created under its name, are two rows, and their writers need not know of each other.
//     The hashes are those that shards are ranges of, in an order that bigint has. The key includes
//     all that a start reads, so that it need not read the objects.
//  2. The table that counts the transactions of each place. A server that has fewer than it has
//     acknowledged went back, as after a failover to a standby that lacks the newest ones. The
//     newest databases of version 1 have it too. And the function for columns with times: a cast is
//     not immutable, because texts that depend on the session's settings are times too, but those
//     of Kubernetes do not.
//  3. That function refuses words whose time is that of the write.
var postgresTables = tables{
	mark: `COMMENT ON TABLE objects IS '` + postgresMark + `%d'`,
	defined: `SELECT coalesce(col_description(attrelid, attnum), '') FROM pg_attribute
		WHERE attrelid = 'objects'::regclass AND attname = $1 AND NOT attisdropped`,
	define: Column.postgres,
	add:    addPostgresColumns, misfits: removePostgresMisfits,
	formats: []string{`
CREATE TABLE objects (
	cluster          text COLLATE "C" NOT NULL,
	"group"          text COLLATE "C" NOT NULL,
	version          text COLLATE "C" NOT NULL,
	resource         text COLLATE "C" NOT NULL,
	namespace        text COLLATE "C" NOT NULL,
	name             text COLLATE "C" NOT NULL,
	uid              text COLLATE "C" NOT NULL,
	resource_version text COLLATE "C" NOT NULL,
	namespace_hash   bigint NOT NULL,
	uid_hash         bigint NOT NULL,
	object           jsonb NOT NULL,
	exact            text,
	PRIMARY KEY (cluster, "group", resource, namespace, name, uid)
		INCLUDE (version, resource_version, namespace_hash, uid_hash)
);
DO 'BEGIN EXECUTE ''ALTER TABLE objects ALTER COLUMN object SET COMPRESSION lz4'';
	EXCEPTION WHEN syntax_error OR feature_not_supported THEN END'; -- a server without lz4
CREATE TABLE checkpoints (
	cluster  text COLLATE "C" NOT NULL,
	"group"  text COLLATE "C" NOT NULL,
	resource text COLLATE "C" NOT NULL,
	shard    text COLLATE "C" NOT NULL,
	part     integer NOT NULL,
	version  text COLLATE "C" NOT NULL,
	server   text NOT NULL,
	data     bytea NOT NULL,
	PRIMARY KEY (cluster, "group", resource, shard, part)
);
ALTER TABLE checkpoints ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE units (
	unit  text COLLATE "C" PRIMARY KEY,
	epoch bigint NOT NULL
);`, `
CREATE TABLE IF NOT EXISTS mirror_writes (
	cluster  text COLLATE "C" NOT NULL,
	"group"  text COLLATE "C" NOT NULL,
	resource text COLLATE "C" NOT NULL,
	shard    text COLLATE "C" NOT NULL,
	written  bigint NOT NULL,
	PRIMARY KEY (cluster, "group", resource, shard)
);
CREATE OR REPLACE FUNCTION sqlsink_timestamp(value text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
	AS 'BEGIN RETURN value::timestamptz; END';`, `
CREATE OR REPLACE FUNCTION sqlsink_timestamp(value text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
	AS $$ BEGIN
		IF value ~* '(now|today|tomorrow|yesterday)' THEN
			RAISE 'no time, but a word for one: "%"', value USING ERRCODE = 'invalid_datetime_format';
		END IF;
		RETURN value::timestamptz;
	END $$;`},
}

// createStaging makes what a transaction brings its rows to before it takes any lock, and which it
// leaves empty. A row without an object is to be removed. N is the number of a row in its batch.
const createStaging = `
CREATE TEMPORARY TABLE staged_rows (
	n                integer NOT NULL,
	namespace        text COLLATE "C" NOT NULL,
	name             text COLLATE "C" NOT NULL,
	uid              text COLLATE "C" NOT NULL,
	resource_version text NOT NULL,
	namespace_hash   bigint NOT NULL,
	uid_hash         bigint NOT NULL,
	object           jsonb,
	exact            text
);
CREATE TEMPORARY TABLE staged_parts (part integer NOT NULL, data bytea NOT NULL);
ALTER TABLE staged_parts ALTER COLUMN data SET STORAGE EXTERNAL;`

// preparePostgres brings the tables up to date, or makes them, and adds the columns that are
// missing, all or nothing. It returns the object identifier of the table objects. The error is an
// *UnusableError where there are tables of that name that are another program's. They stay as they
// are.
func preparePostgres(ctx context.Context, db *sql.DB, columns []Column) (id uint32, err error) {
	err = transact(ctx, db, func(tx *sql.Tx) error {
		// Two writers that start at once would both make them. One of them may take long.
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(`SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(%d, 0)`, advisoryLocks)); err != nil {
			return err
		}
		format, err := postgresFormat(ctx, tx)
		if err != nil {
			return err
		}
		if err := postgresTables.Prepare(ctx, tx, format, columns); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT 'objects'::regclass::oid`).Scan(&id)
	})
	return id, err
}

// computed is a column that the server computes, whichever program has added it.
type computed struct{ name, value string }

// computedColumns returns those of the table objects.
func computedColumns(ctx context.Context, db *sql.DB) (all []computed, err error) {
	rows, err := db.QueryContext(ctx, `SELECT attname, pg_get_expr(adbin, adrelid) FROM pg_attribute JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
		WHERE attrelid = 'objects'::regclass AND attgenerated <> '' AND NOT attisdropped ORDER BY attnum`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c computed
		if err := rows.Scan(&c.name, &c.value); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// postgresFormat returns the version of the tables, and 0 where there are none.
func postgresFormat(ctx context.Context, tx *sql.Tx) (format int, err error) {
	var encoding, schema, mark, others string
	err = tx.QueryRowContext(ctx, `SELECT current_setting('server_encoding'), coalesce(current_schema(), ''),
		coalesce(obj_description(to_regclass('objects'), 'pg_class'), ''),
		(SELECT coalesce(string_agg(name, ', '), '') FROM unnest('{objects,checkpoints,units}'::text[]) AS name WHERE to_regclass(name) IS NOT NULL)`).
		Scan(&encoding, &schema, &mark, &others)
	number, own := strings.CutPrefix(mark, postgresMark)
	switch {
	case err != nil:
		return 0, err
	case encoding != "UTF8":
		return 0, &UnusableError{fmt.Sprintf("its encoding is %s", encoding), "use one whose encoding is UTF8"}
	case schema == "":
		return 0, &UnusableError{"none of the schemas of its search_path exists", "create one, or name another search_path"}
	case own:
		if format, err = strconv.Atoi(number); err != nil || format > len(postgresTables.formats) {
			return 0, errNewerFormat(number, len(postgresTables.formats))
		}
	case others != "":
		return 0, &UnusableError{fmt.Sprintf("schema %s has tables of another program (%s)", schema, others),
			"it was not changed: name another database, or another schema with search_path"}
	}
	return format, nil
}

// addPostgresColumns adds columns, with their definitions as comments. It waits ten seconds for
// those who use the table, because others wait behind it.
func addPostgresColumns(missing []Column) string {
	var definitions, comments []string
	for _, c := range missing {
		definitions = append(definitions, "ADD COLUMN "+c.postgres())
		comments = append(comments, fmt.Sprintf(`COMMENT ON COLUMN objects."%s" IS %s;`, c.Name, quote(c.postgres())))
	}
	return `SET LOCAL lock_timeout = '10s'; ALTER TABLE objects ` + strings.Join(definitions, ", ") + ";" + strings.Join(comments, "")
}

// removePostgresMisfits computes the columns row by row, because a statement that computes them for all
// rows ends with the first one that does not fit.
func removePostgresMisfits(ctx context.Context, tx *sql.Tx, columns []Column) ([]misfit, error) {
	var each strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&each, "BEGIN PERFORM %s; EXCEPTION WHEN data_exception OR program_limit_exceeded THEN RETURN 'column %s: ' || SQLERRM; END;\n", c.postgresValue(), c.Name)
	}
	// Nobody writes between this and the columns.
	if _, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '10s'; LOCK TABLE objects IN ACCESS EXCLUSIVE MODE;
		CREATE OR REPLACE FUNCTION pg_temp.sqlsink_misfit("group" text, resource text, object jsonb) RETURNS text LANGUAGE plpgsql AS `+
		quote("BEGIN "+each.String()+" RETURN NULL; END")); err != nil {
		return nil, err
	}
	found, err := readMisfits(ctx, tx, `WITH found AS MATERIALIZED (
			SELECT ctid AS at, pg_temp.sqlsink_misfit("group", resource, object) AS problem FROM objects)
		DELETE FROM objects USING found WHERE objects.ctid = found.at AND found.problem IS NOT NULL
		RETURNING cluster, "group", resource, namespace, name, problem`)
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, `DROP FUNCTION pg_temp.sqlsink_misfit`)
	return found, err
}
