package sqlsink

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// presence is a connection that shows other writers that this one writes. It has an advisory lock,
// which ends with the connection: one of its own where no other writer may write, or one that is
// shared by those that share the work. The reign makes sure of it.
type presence struct {
	config *pgx.ConnConfig
	lock   string // the statement

	turn chan struct{} // held by the one who uses conn
	conn *pgx.Conn     // nil before the first Renew
}

func newPresence(config *pgx.ConnConfig, tables uint32, alone bool) *presence {
	shared := "_shared"
	if alone {
		shared = ""
	}
	return &presence{config: config, turn: make(chan struct{}, 1),
		lock: fmt.Sprintf("SELECT pg_advisory_lock%s(%d, %d)", shared, advisoryLocks, int32(tables))}
}

// Renew sees to it that the connection stands, and makes one if not. The error is errAnotherWriter
// where another writer has the lock.
func (p *presence) Renew(ctx context.Context) (err error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.conn != nil && p.conn.Ping(ctx) == nil {
		return nil
	}
	p.end()
	if p.conn, err = pgx.ConnectConfig(ctx, p.config); err != nil {
		return err
	}
	// A server notices the end of a process a little later.
	if _, err = p.conn.Exec(ctx, `SET lock_timeout = '5s'; `+p.lock); err != nil {
		p.end()
	}
	if stateOf(err) == "55P03" { // lock_not_available
		return errAnotherWriter
	}
	return err
}

// End closes the connection, and so unlocks.
func (p *presence) End() {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.end()
}

func (p *presence) end() {
	if p.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.conn.Close(ctx) // it may be broken, and is gone all the same
	p.conn = nil
}
