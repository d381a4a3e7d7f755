package sqlsink

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgres is a database of a PostgreSQL server. Any number of processes may write to it if they
// share the work by units and epochs, and otherwise one.
type postgres struct {
	reader
	alone    bool // there is no other writer
	pool     *pgxpool.Pool
	presence *pgxpool.Pool
	columns  []computed
	tables   uint32      // the object identifier of the table objects, which tells these tables from those of another schema
	reign    int64       // see reignOf
	shaken   atomic.Bool // a connection was lost: perhaps that of the presence too
	counts   sync.Map    // a count for each place in any version
}

// sessionSettings are for every connection, without names and values that the server does not know.
//
//   - A process that is stopped in the middle of its transaction does not hold it longer than
//     idle_in_transaction_session_timeout, and one that waits for it says so after lock_timeout.
//   - The presence holds its lock in an idle session, which the server must not end.
//   - A machine that is gone is noticed by the server within ten seconds, which is less than a
//     Lease lasts. The default is two hours.
//   - The statements that merge rows join few with many. A plan that reads the whole table for
//     that, as is made while it is small, would be kept while it grows. A scan that is off is shown
//     as dear, and dear statements would be compiled, which takes longer than they do.
//   - lz4 takes a third of the time that PostgreSQL's own compression takes.
//   - What is sent and read is UTF-8, whatever the role, the database or the address has as its
//     client_encoding. The server would store the bytes of a text as other characters.
const sessionSettings = `
SELECT set_config(wanted.name, wanted.value, false) FROM (VALUES
	('idle_in_transaction_session_timeout', '5s'),
	('idle_session_timeout', '0'),
	('lock_timeout', '10s'),
	('tcp_keepalives_idle', '4'),
	('tcp_keepalives_interval', '2'),
	('tcp_keepalives_count', '3'),
	('tcp_user_timeout', '10s'),
	('client_connection_check_interval', '1s'),
	('enable_seqscan', 'off'),
	('enable_hashjoin', 'off'),
	('enable_mergejoin', 'off'),
	('jit', 'off'),
	('default_toast_compression', 'lz4'),
	('client_encoding', 'UTF8'),
	('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END)
) AS wanted (name, value) JOIN pg_settings USING (name) WHERE enumvals IS NULL OR value = ANY (enumvals)`

// connectPatience limits how long a server may take to answer a new connection, unless the address
// says connect_timeout, and to answer the ping on an idle one. The pool waits for both when it is
// closed. Its own limits are two minutes and none.
const connectPatience = 5 * time.Second

// openPostgres connects to a database. See Open.
func openPostgres(ctx context.Context, pool *pgxpool.Config, config Config) (_ *postgres, err error) {
	p := &postgres{alone: config.Shards == 0, reader: reader{ofPlace: ofShard, ofCheckpoint: ofCheckpoint,
		others: `EXISTS (SELECT FROM objects WHERE ` + ofShard + ` AND version <> $8)`,
		named:  namedRows,
		object: `coalesce(exact, object::text)`}}
	pool.PingTimeout = connectPatience
	pool.ConnConfig.ConnectTimeout = cmp.Or(pool.ConnConfig.ConnectTimeout, connectPatience)
	if err := checkSessions(ctx, &pool.ConnConfig.Config); err != nil {
		return nil, err
	}
	pool.ConnConfig.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.Exec(ctx, sessionSettings).Close()
	}
	pool.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, createStaging)
		return err
	}
	if p.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, err
	}
	if err = p.openPresence(ctx, pool); err != nil {
		return nil, err
	}
	p.db = stdlib.OpenDBFromPool(p.pool)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if p.tables, err = preparePostgres(ctx, p.db, config.Columns); err != nil {
		return nil, err
	}
	if p.columns, err = computedColumns(ctx, p.db); err != nil {
		return nil, err
	}
	if err = p.renewPresence(ctx); err == nil {
		p.reign, err = p.reignOf(ctx, config.Shards)
	}
	return p, err
}

func (p *postgres) Close() error {
	err := p.db.Close()
	p.presence.Reset() // both wait at once for a server that does not answer
	p.pool.Close()
	p.presence.Close()
	return err
}

// stateOf is the code of the server's error, and empty where err is not the server's.
func stateOf(err error) string {
	if failed := (*pgconn.PgError)(nil); errors.As(err, &failed) {
		return failed.Code
	}
	return ""
}
