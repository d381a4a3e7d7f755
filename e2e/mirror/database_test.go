package mirror

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// statements are the SQL statements of each action that harms PostgreSQL or mends it. Most of them
// end all sessions first, because they need locks that the transaction of a paused replica would
// hold.
var statements = map[action]string{
	makeReadOnly: `ALTER SYSTEM SET default_transaction_read_only = on; SELECT pg_reload_conf();`,
	makeWritable: `ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf();`,

	// Triggers raise the error that a client gets when the disk is full. A disk that is really full
	// would be the disk of the tests.
	fill: endSessions + `
		CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
		END $$;` + each(`CREATE TRIGGER disk_full BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION disk_full();`),
	empty: endSessions + `DROP FUNCTION disk_full CASCADE;`,

	// The copies are the state of a standby that receives no more commits. A failover puts them
	// back.
	fallBehind: endSessions + `BEGIN; ` + lockAll + each(`CREATE TABLE standby_{table} AS TABLE {table};`) + `COMMIT;`,
	failOver: endSessions + `BEGIN; ` + lockAll + each(`DELETE FROM {table}; INSERT INTO {table} SELECT * FROM standby_{table}; DROP TABLE standby_{table};`) +
		`COMMIT;` + endSessions,
}

// tables are those of the mirror, in the order in which its transactions lock them.
var tables = []string{"units", "mirror_writes", "objects", "checkpoints"}

var lockAll = "LOCK TABLE " + strings.Join(tables, ", ") + ";"

const endSessions = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();`

// do harms the database as an action says, or mends that.
func (d *table) do(t *testing.T, what action) {
	t.Helper()
	switch what {
	case kill:
		d.server.Kill(t)
	case start:
		d.server.Restart(t)
	default:
		require.Contains(t, statements, what)
		d.server.Query(t, d.name, statements[what])
	}
}

// await waits until the mirrors have made their tables.
func (d *table) await(ctx context.Context, t *testing.T) {
	t.Helper()
	for d.server.Query(t, d.name, `SELECT to_regclass('mirror_writes') IS NOT NULL`) != "t" {
		require.NoError(t, ctx.Err())
		time.Sleep(100 * time.Millisecond)
	}
}

// each is a statement for each of the tables.
func each(format string) (all string) {
	for _, table := range tables {
		all += strings.ReplaceAll(format, "{table}", table)
	}
	return all
}
