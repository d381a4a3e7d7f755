package sqlsink_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"
)

// constrained opens a database whose table refuses the resource version 666, as that of a user
// with a constraint does.
func constrained(t *testing.T, address string) *sqlsink.Sink {
	sink := opened(t, sqlsink.Config{Address: address})
	if strings.HasPrefix(address, "sqlite:") {
		execute(t, strings.TrimPrefix(address, "sqlite:"), `CREATE TRIGGER beware BEFORE INSERT ON objects WHEN new.resource_version = '666'
			BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
		return sink
	}
	query(t, address, `ALTER TABLE objects ADD CONSTRAINT not_this_one CHECK (resource_version <> '666')`)
	return sink
}

// query runs statements in a PostgreSQL database as another program does, and returns the first
// column of the rows of the last one.
func query(t testing.TB, address, statement string, arguments ...any) []string {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, address)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	rows, err := conn.Query(ctx, statement, append([]any{pgx.QueryExecModeExec}, arguments...)...)
	require.NoError(t, err)
	texts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (text string, err error) {
		var value any
		err = row.Scan(&value)
		return fmt.Sprint(value), err
	})
	require.NoError(t, err, statement)
	return texts
}

// refusedOf returns the error of each event of a batch that was refused.
func refusedOf(t *testing.T, err error) map[int]error {
	t.Helper()
	var failed informer.FailedEvents
	require.ErrorAs(t, err, &failed)
	refused := make(map[int]error)
	for i, f := range failed {
		if i > 0 {
			require.Greater(t, f.Index, failed[i-1].Index)
		}
		refused[f.Index] = f.Err
	}
	return refused
}

// All rows of a batch but those that the database refuses are committed, however many they are and
// wherever they stand. The errors are the database's own.
func TestRefusedRowsDoNotStopTheOthers(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := constrained(t, address).Place("here", pods)
		for _, size := range []int{1, 2, 3, 15, 16, 17, 500} {
			for name, bad := range map[string]func(i int) bool{
				"none":   func(int) bool { return false },
				"first":  func(i int) bool { return i == 0 },
				"last":   func(i int) bool { return i == size-1 },
				"ten":    func(i int) bool { return i%50 == 7 },
				"halves": func(i int) bool { return i < size/2 },
				"all":    func(int) bool { return true },
			} {
				prefix := fmt.Sprintf("%s-%d-", name, size)
				var events []informer.Event
				want, index := map[string]string{}, map[int]bool{}
				for i := range size {
					version := fmt.Sprint(1000 + i)
					if bad(i) {
						version, index[i] = "666", true
					} else {
						want["ns/"+prefix+fmt.Sprint(i)] = version
					}
					events = append(events, put(prefix+fmt.Sprint(i), version))
				}
				err := write(t.Context(), here, events...)
				if len(index) == 0 {
					require.NoError(t, err)
				} else {
					refused := refusedOf(t, err)
					require.Len(t, refused, len(index), prefix)
					for i, err := range refused {
						require.True(t, index[i], prefix)
						requireOwnWords(t, err)
					}
				}
				found := stored(t, here)
				for key := range found {
					if !strings.HasPrefix(key, "ns/"+prefix) {
						delete(found, key)
					}
				}
				require.Equal(t, want, found, prefix)
			}
		}
	})
}

// requireOwnWords demands the error of a constraint.
func requireOwnWords(t *testing.T, err error) {
	t.Helper()
	if failed := (*pgconn.PgError)(nil); errors.As(err, &failed) {
		require.Equal(t, `ERROR: new row for relation "objects" violates check constraint "not_this_one" (SQLSTATE 23514)`, err.Error())
		return
	}
	failed := (*sqlite.Error)(nil)
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "not this one")
}

// What is refused only at the commit is found too.
func TestRowsThatAreRefusedAtTheCommit(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
	query(t, address, `CREATE FUNCTION beware() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN IF new.resource_version = '666' THEN RAISE 'not this one'; END IF; RETURN new; END $$`)
	query(t, address, `CREATE CONSTRAINT TRIGGER beware AFTER INSERT ON objects DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION beware()`)
	var events []informer.Event
	for i := range 100 {
		events = append(events, put(fmt.Sprint(i), fmt.Sprint(600+i)))
	}
	refused := refusedOf(t, write(t.Context(), here, events...))
	require.Len(t, refused, 1)
	require.EqualError(t, refused[66], "ERROR: not this one (SQLSTATE P0001)")
	require.Len(t, stored(t, here), 99)
}

// A row whose removal the database refuses is one as well.
func TestRefusedRemovals(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
	require.NoError(t, write(t.Context(), here, put("a", "10"), put("b", "11")))
	query(t, address, `CREATE TABLE bills (cluster text, "group" text, resource text, namespace text, name text, uid text,
		FOREIGN KEY (cluster, "group", resource, namespace, name, uid) REFERENCES objects)`)
	query(t, address, `INSERT INTO bills SELECT cluster, "group", resource, namespace, name, uid FROM objects WHERE name = 'a'`)
	refused := refusedOf(t, write(t.Context(), here, gone("a"), gone("b"), put("c", "12")))
	require.Len(t, refused, 1)
	require.ErrorContains(t, refused[0], `violates foreign key constraint`)
	require.Equal(t, map[string]string{"ns/a": "10", "ns/c": "12"}, stored(t, here))
}

// A trigger of a statement refuses it whatever rows it has, none included. All rows are named then,
// each once, also one that is refused before it comes to the table.
func TestStatementsThatATriggerRefuses(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
	query(t, address, `CREATE FUNCTION beware() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$`)
	query(t, address, `CREATE TRIGGER beware BEFORE DELETE ON objects EXECUTE FUNCTION beware()`)
	odd := placed("ns", "odd", "\x00", "12")
	for _, events := range [][]informer.Event{{put("a", "10")}, {put("a", "10"), put("b", "11")}, {odd}, {put("a", "10"), odd, put("b", "11")}} {
		ctx, cancel := context.WithTimeout(t.Context(), soon) // and lastWrite
		refused := refusedOf(t, write(ctx, here, events...))
		cancel()
		require.Len(t, refused, len(events))
		for i, err := range refused {
			if events[i].Key == "ns/odd" {
				require.ErrorContains(t, err, "invalid byte sequence")
			} else {
				require.EqualError(t, err, "ERROR: not now (SQLSTATE P0001)")
			}
		}
	}
	require.Empty(t, stored(t, here))
}

// An event that has no JSON is not written, and stops no other.
func TestEventsWithoutJSON(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
		odd := with("odd", "11", map[string]any{"f": func() {}})
		refused := refusedOf(t, write(t.Context(), here, put("a", "10"), odd, put("b", "12"), informer.Event{Type: informer.Added, Key: "a/b/c"}))
		require.Len(t, refused, 2)
		require.ErrorContains(t, refused[1], "unsupported type: func()")
		require.ErrorContains(t, refused[3], `unexpected key format: "a/b/c"`)
		require.Equal(t, map[string]string{"ns/a": "10", "ns/b": "12"}, stored(t, here))
	})
}
