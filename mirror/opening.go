package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/mirror/internal/commandline"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/sqlsink"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// openPatience is how long one try to open a database may take.
	openPatience = 30 * time.Second
	// openReminds is how often it is said that the database is still waited for.
	openReminds = time.Minute
)

// opening opens a database, and waits for it while its server is down. The status page shows it
// meanwhile.
type opening struct {
	commandline.Options
	say    func(line string)
	began  time.Time
	failed atomic.Pointer[informer.Status] // nil before the first try has failed
}

// Open opens the database. The error is one that trying again does not help against, or says that
// there is no more patience, or why ctx has ended.
func (w *opening) Open(ctx context.Context) (*sqlsink.Sink, error) {
	config, limit := sqlsink.Config{Address: w.Database}, openPatience
	if w.IsShared() {
		config.Shards = w.Follow.Shards
	}
	if w.Once {
		limit = min(openPatience, w.Timeout)
	}
	backoff := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 15 * time.Second}
	name, _ := sqlsink.Name(w.Database) // it was checked
	var said time.Time
	for {
		within, cancel := context.WithTimeout(ctx, limit)
		db, err := sqlsink.Open(within, config)
		if err != nil && within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("database %s: it cannot be opened within %s: %w", name, limit, err)
		}
		cancel()
		if err == nil && !said.IsZero() {
			w.say(fmt.Sprintf("database %s: open, after %s", name, display.Round(time.Since(w.began))))
		}
		if err == nil || strings.HasPrefix(w.Database, commandline.SQLite) || isFinal(err) || ctx.Err() != nil {
			return db, err
		}
		w.failed.Store(&informer.Status{
			LastError: err, LastErrorTime: time.Now(), FailingSince: w.began,
			Condition: informer.Condition{Reason: informer.ReasonFailing, Message: display.Reason(err), Since: w.began},
		})
		if spent := w.Follow.Patience.Spent(err, w.began, w.began, time.Now()); spent != nil {
			return nil, spent
		}
		pause := backoff.Step()
		if time.Since(said) >= openReminds {
			w.say(fmt.Sprintf("%s; tried again in %s, and until it can be opened", display.Reason(err), display.Round(pause)))
			said = time.Now()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Status shows the database as if it were an informer that is not synced.
func (w *opening) Status() informer.Status {
	if failed := w.failed.Load(); failed != nil {
		return *failed
	}
	return informer.Status{Condition: informer.Condition{Reason: informer.ReasonNotStarted, Message: "opening the database", Since: w.began}}
}

// isFinal reports whether a PostgreSQL server has answered what only a change of its settings, or
// of the address, can mend. A server that does not answer may do so later, and one that starts,
// ends, or has too many clients says so of itself.
func isFinal(err error) bool {
	if _, unusable := errors.AsType[*sqlsink.UnusableError](err); unusable {
		return true
	}
	answer, is := errors.AsType[*pgconn.PgError](err)
	return is && slices.ContainsFunc([]string{
		"0A", // it lacks a feature
		"22", // it does not take a value
		"28", // the account or its password
		"3D", // there is no such database
		"3F", // nor schema
		"42", // a right is missing, or a statement makes no sense to it
	}, func(class string) bool { return strings.HasPrefix(answer.Code, class) })
}
