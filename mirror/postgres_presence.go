package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// How long a start waits for another mirror to end, and how often it looks: a server notices the
// end of a process a little later.
const (
	presencePatience = 5 * time.Second
	presenceTick     = 100 * time.Millisecond
)

var errAnotherMirror = &unusableError{"another mirror writes to it", "end that one first"}

// presence is a connection that shows other mirrors that this one writes. It has an advisory lock,
// which ends with the connection: one of its own where no other mirror may write, or one that is
// shared by those that share the work. The reign makes sure of it.
type presence struct {
	config *pgx.ConnConfig
	tables uint32
	lock   string // the function

	turn chan struct{} // held by the one who uses conn
	conn *pgx.Conn
}

func newPresence(config *pgx.ConnConfig, tables uint32, alone bool) *presence {
	p := &presence{config: config, tables: tables, lock: "pg_try_advisory_lock", turn: make(chan struct{}, 1)}
	if !alone {
		p.lock = "pg_try_advisory_lock_shared"
	}
	return p
}

// Begin connects and locks. The error is errAnotherMirror where another mirror has the lock.
func (p *presence) Begin(ctx context.Context) (err error) {
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return err
	}
	defer func() {
		if p.conn != conn {
			err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		}
	}()
	if _, err := conn.Exec(ctx, sessionSettings); err != nil {
		return err
	}
	for began := time.Now(); ; {
		var locked bool
		if err := conn.QueryRow(ctx, `SELECT `+p.lock+`($1, $2)`, advisoryLocks, int32(p.tables)).Scan(&locked); err != nil {
			return err
		}
		if locked {
			p.conn = conn
			return nil
		}
		if time.Since(began) > presencePatience {
			return errAnotherMirror
		}
		select {
		case <-time.After(presenceTick):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Alone calls do while no other mirror is present, and reports whether that is so. This one shares
// the lock with others before and afterwards.
func (p *presence) Alone(ctx context.Context, do func() error) (alone bool, err error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if err := p.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1, $2)`, advisoryLocks, int32(p.tables)).Scan(&alone); err != nil || !alone {
		return false, err
	}
	if err := do(); err != nil {
		return true, err // the connection ends with it, and so does the lock
	}
	_, err = p.conn.Exec(ctx, `SELECT pg_advisory_unlock($1, $2)`, advisoryLocks, int32(p.tables))
	return true, err
}

// Renew sees to it that the connection still stands, and makes another one if not.
func (p *presence) Renew(ctx context.Context) error {
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
	return p.Begin(ctx)
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
