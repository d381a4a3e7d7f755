package sqlsink

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/util/wait"
)

// blockedPatience is for how long a claim waits for other sessions before it ends them.
const blockedPatience = time.Second

// endBlockers ends the sessions that a session waits for, again and again, until stop is called.
// Such a session is of an owner that was frozen in the middle of a transaction: the server does not
// notice that while the other machine acknowledges packets. A session that itself waits is not
// ended, but the writer that it waits for: both may be of that owner. It takes a connection of its
// own, because all those of the pool may wait.
func (p *postgres) endBlockers(ctx context.Context, waiting uint32) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var ending sync.WaitGroup
	ending.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, blockedPatience, false, func(ctx context.Context) (bool, error) {
			// A claim that goes on waiting fails with the error of lock_timeout.
			if conn, err := pgx.ConnectConfig(ctx, p.pool.Config().ConnConfig); err == nil {
				_, _ = conn.Exec(ctx, `WITH RECURSIVE blocker AS (
					SELECT unnest(pg_blocking_pids($1)) AS pid
					UNION
					SELECT behind.pid FROM blocker, unnest(pg_blocking_pids(blocker.pid)) AS behind (pid)
						WHERE EXISTS (SELECT FROM pg_locks WHERE pg_locks.pid = behind.pid AND relation = 'units'::regclass)
					) SELECT pg_terminate_backend(pid) FROM blocker WHERE pid <> 0 AND cardinality(pg_blocking_pids(pid)) = 0`, int32(waiting))
				_ = conn.Close(context.WithoutCancel(ctx))
			}
			return false, nil
		})
	})
	return func() {
		cancel()
		ending.Wait()
	}
}
