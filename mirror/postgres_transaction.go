package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// How often a transaction is tried again at once that the server has ended for the sake of another
// one.
const maxConflicts = 5

// rollbackPatience is for how long a transaction that has failed may take to end. Then its
// connection is closed.
const rollbackPatience = time.Second

// transaction is what is written all or nothing. Stage brings its data to the temporary tables of
// the connection, which takes time, and locks nothing. Merge queues the statements that bring them
// to the tables. They and the commit are one message: a process that is stopped in the midst of a
// transaction keeps no one waiting for long.
type transaction struct {
	places []place
	stage  func(ctx context.Context, conn *pgx.Conn) error
	merge  func(batch *pgx.Batch)
}

// transact commits a transaction, or undoes it if it fails or panics.
func (p *postgres) transact(ctx context.Context, t transaction) (err error) {
	defer func() { err = p.checked(err) }()
	if p.shaken.Load() {
		if err := p.presence.Renew(ctx); err != nil {
			return err
		}
		p.shaken.Store(false)
	}
	for range maxConflicts {
		err = p.try(ctx, t)
		switch stateOf(err) {
		case "40001", "40P01": // serialization_failure, deadlock_detected
			continue
		}
		break
	}
	if isLost(err) {
		p.shaken.Store(true)
	}
	return err
}

// isLost reports whether err may mean that a connection is gone.
func isLost(err error) bool {
	if err == nil || isUnusable(err) {
		return false
	}
	state := stateOf(err)
	return state == "" || state[:2] == "57" || state[:2] == "08" || state == "25P03"
}

func (p *postgres) try(ctx context.Context, t transaction) (err error) {
	acquired, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer acquired.Release()
	conn := acquired.Conn()
	if _, err := conn.Exec(ctx, `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`); err != nil {
		return err
	}
	complete := false
	defer func() {
		if !complete && !conn.IsClosed() {
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackPatience)
			defer cancel()
			_, _ = conn.Exec(within, `ROLLBACK`) // the pool closes a connection whose transaction has not ended
		}
	}()
	if err := t.stage(ctx, conn); err != nil {
		return err
	}
	if err := p.lock(ctx, conn, t.places); err != nil {
		return err
	}
	if err := p.fence(ctx, conn, t.places); err != nil {
		return err
	}
	var batch pgx.Batch
	t.merge(&batch)
	written := make([]int64, len(t.places))
	for i, of := range t.places {
		countWrite(&batch, of, &written[i])
	}
	committed := false
	batch.Queue(`COMMIT`).Exec(func(tag pgconn.CommandTag) error {
		committed = tag.String() == "COMMIT"
		return nil
	})
	if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	if !committed {
		return errors.New("the server has undone the transaction")
	}
	complete = true
	for i, of := range t.places {
		p.acknowledged.Set(of, written[i])
	}
	return nil
}

// lock has the transactions of a place come one after the other. An informer makes one at a time,
// but where the answer to a commit is lost, the server may still be at it while the informer tries
// again, with newer changes.
func (p *postgres) lock(ctx context.Context, conn *pgx.Conn, places []place) error {
	keys := make([]int64, 0, len(places))
	for _, of := range places {
		hash := fnv.New64a()
		fmt.Fprintf(hash, "%d\x00%s\x00%s\x00%s\x00%s", p.tables, of.cluster, of.resource.Group, of.resource.Resource, of.shard)
		keys = append(keys, int64(hash.Sum64()))
	}
	slices.Sort(keys) // all take them in one order
	_, err := conn.Exec(ctx, `SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) WITH ORDINALITY AS keys (key, n) ORDER BY n`, slices.Compact(keys))
	return err
}

func unitsOf(places []place) []string {
	units := make([]string, 0, len(places))
	for _, of := range places {
		units = append(units, of.unit())
	}
	slices.Sort(units)
	return slices.Compact(units)
}

// hashRange is a range of hashes, with both its ends, in the order of bigint.
type hashRange struct{ first, last int64 }

// ordered is a hash in the order of bigint.
func ordered(hash uint64) int64 { return int64(hash ^ 1<<63) }

// hashOf is the hash that shards are ranges of.
func hashOf(text string) int64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, text) // it cannot fail
	return ordered(hash.Sum64())
}
