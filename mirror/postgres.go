package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres is a database of a PostgreSQL server. Any number of mirrors may write to it if they
// share the work by units and epochs, and otherwise one.
type postgres struct {
	name     string
	pool     *pgxpool.Pool
	presence *presence
	tables   uint32      // the object identifier of the table objects, which tells these tables from those of another schema
	reign    int64       // see reignOf
	shaken   atomic.Bool // a connection was lost: perhaps that of the presence too

	acknowledged acknowledgments // how often places were written

	sound    context.Context // see Sound
	unusable context.CancelCauseFunc
}

var _ database = (*postgres)(nil)

// sessionSettings are for every connection. Those that the server does not know are left out.
//
//   - A process that is stopped in the midst of its transaction does not hold it longer than
//     idle_in_transaction_session_timeout, and one that waits for it says so after lock_timeout.
//   - A machine that is gone is noticed by the server within ten seconds, which is less than a
//     Lease lasts. The default is two hours.
//   - The statements that merge rows join few with many. A plan that reads the whole table for
//     that, as is made while it is small, would be kept while it grows. A scan that is off is shown
//     as dear, and dear statements would be compiled, which takes longer than they do.
const sessionSettings = `
SELECT set_config(wanted.name, wanted.value, false) FROM (VALUES
	('idle_in_transaction_session_timeout', '5s'),
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
	('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END)
) AS wanted (name, value) JOIN pg_settings USING (name)`

// connectPatience limits how long a server may take to answer a new connection, unless the address
// says connect_timeout, and to answer the ping on an idle one. The pool waits for both when it is
// closed. Its own limits are two minutes and none.
const connectPatience = 5 * time.Second

// openPostgres connects to a database, and makes its tables where they are missing. Shards is into
// how many parts the mirrors that share the work divide each cluster: there may be other mirrors
// with the same number, and every context of a write has an epoch. With 0, no other mirror may
// write to it at the same time. The error is an *unusableError where the tables are another
// program's, or another mirror writes to them. It is an *otherShardsError while there are mirrors
// with another number.
func openPostgres(ctx context.Context, config *pgxpool.Config, shards int) (_ *postgres, err error) {
	alone := shards == 0
	config = config.Copy()
	config.PingTimeout = connectPatience
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectPatience
	}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, sessionSettings); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, createStaging)
		return err
	}
	p := &postgres{name: nameOf(config.ConnConfig)}
	p.sound, p.unusable = context.WithCancelCause(context.Background())
	defer func() {
		if err != nil {
			err = fmt.Errorf("database %s: %w", p.name, errors.Join(err, p.Close()))
		}
	}()
	if p.tables, err = createPostgresTables(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	p.presence = newPresence(config.ConnConfig, p.tables, alone)
	if err := p.presence.Begin(ctx); err != nil {
		return nil, err
	}
	if p.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	if !alone {
		if err := p.claimShards(ctx, shards); err != nil {
			return nil, err
		}
	}
	p.reign, err = p.reignOf(ctx, alone)
	return p, err
}

// nameOf is the address of a database, without a password.
func nameOf(config *pgx.ConnConfig) string {
	name := url.URL{Scheme: "postgres", Path: "/" + config.Database}
	if config.User != "" {
		name.User = url.User(config.User)
	}
	if strings.HasPrefix(config.Host, "/") {
		name.RawQuery = url.Values{"host": {config.Host}}.Encode()
	} else {
		name.Host = fmt.Sprintf("%s:%d", config.Host, config.Port)
	}
	return name.String()
}

// String is the address, without a password.
func (p *postgres) String() string { return p.name }

// Writers is one for each connection of the pool: pool_max_conns in the address.
func (p *postgres) Writers() int { return int(p.pool.Config().MaxConns) }

// TakesRaw is true: jsonb has one form for equal objects.
func (p *postgres) TakesRaw() bool { return true }

// Sound ends when another mirror has begun to write.
func (p *postgres) Sound() context.Context { return p.sound }

// Close ends all connections.
func (p *postgres) Close() error {
	p.unusable(nil)
	if p.pool != nil {
		p.pool.Close()
	}
	if p.presence != nil {
		p.presence.End()
	}
	return nil
}

// checked returns err, and ends sound where that is an *unusableError.
func (p *postgres) checked(err error) error {
	if isUnusable(err) {
		p.unusable(fmt.Errorf("database %s: %w", p.name, err))
	}
	return err
}

// stateOf is the code of the server's error, and empty where err is not the server's.
func stateOf(err error) string {
	if failed := (*pgconn.PgError)(nil); errors.As(err, &failed) {
		return failed.Code
	}
	return ""
}
