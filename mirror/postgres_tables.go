package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// postgresMark is the comment on the table objects that says that it is mirror's.
const postgresMark = "rvinformer mirror, format 1"

// postgresTables makes the tables.
//
// A row belongs to the shard that its UID, or its namespace, is in, and only the owner of that
// shard writes it. So the UID is a part of the key: an object that is deleted, and another one that
// is created under its name, are two rows, and their writers need not know of each other. The
// hashes are those that shards are ranges of, in an order that bigint has.
//
// The key includes all that a start reads, so that it need not read the objects.
const postgresTables = `
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
	object           jsonb %[1]s NOT NULL,
	exact            text,
	PRIMARY KEY (cluster, "group", resource, namespace, name, uid)
		INCLUDE (version, resource_version, namespace_hash, uid_hash)
);
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
);
COMMENT ON TABLE objects IS '%[2]s';`

// postgresWrites makes the table that counts the transactions of each place. A server that has
// fewer than it has acknowledged went back, as after a failover to a standby that lacks the newest
// ones. Mirrors of before that know nothing of it.
const postgresWrites = `
CREATE TABLE mirror_writes (
	cluster  text COLLATE "C" NOT NULL,
	"group"  text COLLATE "C" NOT NULL,
	resource text COLLATE "C" NOT NULL,
	shard    text COLLATE "C" NOT NULL,
	written  bigint NOT NULL,
	PRIMARY KEY (cluster, "group", resource, shard)
)`

// createStaging makes what a transaction brings its rows to before it takes any lock, and which it
// leaves empty. A row without an object is to be removed.
const createStaging = `
CREATE TEMPORARY TABLE staged_rows (
	step             integer NOT NULL,
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

// advisoryLocks is the first number of mirror's advisory locks: the letters "mirr".
const advisoryLocks = 0x6d697272

// createPostgresTables makes the tables where they are missing, all or nothing, and returns the
// object identifier of the first. The error is an *unusableError where there are tables of that
// name that are not mirror's. They stay as they are.
func createPostgresTables(ctx context.Context, config *pgx.ConnConfig) (id uint32, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()

	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var encoding, schema string
		// Two mirrors that start at once would both make them.
		if err := tx.QueryRow(ctx, `SELECT pg_advisory_xact_lock($1, 0)::text, current_setting('server_encoding'), coalesce(current_schema(), '')`,
			advisoryLocks).Scan(nil, &encoding, &schema); err != nil {
			return err
		}
		if encoding != "UTF8" {
			return &unusableError{fmt.Sprintf("its encoding is %s", encoding), "mirror needs one whose encoding is UTF8"}
		}
		if schema == "" {
			return &unusableError{"none of the schemas of its search_path exists", "create one, or name another search_path"}
		}
		var mark *string
		var others []string
		var counts bool
		if err := tx.QueryRow(ctx, `SELECT obj_description(to_regclass('objects'), 'pg_class'),
			array(SELECT name FROM unnest('{objects,checkpoints,units}'::text[]) AS name WHERE to_regclass(name) IS NOT NULL),
			to_regclass('mirror_writes') IS NOT NULL`).Scan(&mark, &others, &counts); err != nil {
			return err
		}
		switch {
		case mark != nil && *mark == postgresMark:
		case len(others) > 0:
			return &unusableError{fmt.Sprintf("schema %s has tables of another program (%s)", schema, strings.Join(others, ", ")),
				"it was not changed: name another database, or another schema with search_path"}
		default:
			compression, err := quickCompression(ctx, tx)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, fmt.Sprintf(postgresTables, compression, postgresMark)); err != nil {
				return fmt.Errorf("cannot create its tables: %w", err)
			}
		}
		if !counts {
			if _, err := tx.Exec(ctx, postgresWrites); err != nil {
				return fmt.Errorf("cannot create its tables: %w", err)
			}
		}
		return tx.QueryRow(ctx, `SELECT 'objects'::regclass::oid`).Scan(&id)
	})
	return id, err
}

// quickCompression is the clause for a column that is compressed with lz4, where the server knows
// it: it takes a third of the time that PostgreSQL's own compression takes.
func quickCompression(ctx context.Context, tx pgx.Tx) (clause string, err error) {
	var known bool
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals))`).Scan(&known)
	if known {
		clause = "COMPRESSION lz4"
	}
	return clause, err
}
