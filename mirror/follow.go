package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// follow runs the mirror until the context ends or, with --once, until everything has settled. It
// reports whether the first sync of everything was complete. With a demo and --once, the error says
// whether the database equals its servers.
func follow(ctx context.Context, m *mirror, simulated *demo, o options, to *screen) (ok bool, err error) {
	began := time.Now()
	var verdict string
	err = m.Run(ctx, func(ctx context.Context) (err error) {
		if simulated != nil {
			churn := simulated.Churn(ctx)
			defer func() { err = errors.Join(err, churn.Stop()) }()
			if o.once {
				verdict, err = settleDemo(ctx, m, simulated, churn, o.timeout)
				return err
			}
		}
		if o.once {
			return ignoreStop(ctx, m.Settled(ctx))
		}
		return m.Follow(ctx)
	})
	if isUnusable(err) || errors.Is(err, errNothing) {
		return false, err
	}
	rows := m.Rows()
	if !o.once {
		sum := total(rows)
		to.Print(fmt.Sprintf("stopped after %s: %s objects of %d resources; %s", round(time.Since(began)), comma(int64(sum.rows)), len(rows), sum.counts))
		missing := unsynced(rows)
		for _, line := range missing {
			to.Say(line)
		}
		return len(missing) == 0, err
	}
	synced, failed := writeSummary(to.out, rows, time.Since(began))
	if verdict != "" {
		to.Print(verdict)
	}
	return synced, errors.Join(err, failed)
}

// settleDemo waits for the first sync of a demo, stops its changes, and compares the database with
// the servers.
func settleDemo(ctx context.Context, m *mirror, simulated *demo, churn *churn, limit time.Duration) (verdict string, err error) {
	if err := m.Settled(ctx); err != nil {
		return "", ignoreStop(ctx, err)
	}
	if err := churn.Stop(); err != nil {
		return "", err
	}
	if len(m.Feeds()) == 0 {
		return "", nil // there is nothing to compare
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	verdict, err = verify(within, m, simulated)
	return verdict, ignoreStop(ctx, err)
}

// ignoreStop drops an error where the user has ended the run: the summary shows what was left
// undone.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
