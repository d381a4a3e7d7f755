package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/mirror/internal/commandline"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/mirror/internal/follow"
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
	sqlsink.Config
	name     string
	patience follow.Patience // with --once, as for a cluster
	limit    time.Duration   // of one try
	say      func(line string)
	began    time.Time

	mu      sync.Mutex
	problem error // of the last try
	last    time.Time
}

func newOpening(o commandline.Options, say func(line string)) *opening {
	w := &opening{Config: sqlsink.Config{Address: o.Database}, limit: openPatience, say: say, began: time.Now()}
	w.name, _ = sqlsink.Name(o.Database) // it was checked
	if o.Once {
		w.patience, w.limit = follow.Patience(o.Timeout), min(openPatience, o.Timeout)
	}
	if o.IsShared() {
		w.Shards = o.Shards
	}
	return w
}

// Open opens the database. The error is one that trying again does not help against, or says that
// there is no more patience, or why ctx has ended.
func (w *opening) Open(ctx context.Context) (*sqlsink.Sink, error) {
	backoff := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 15 * time.Second}
	var said time.Time
	for {
		db, err := w.try(ctx)
		if err == nil {
			if !said.IsZero() {
				w.say(fmt.Sprintf("database %s: open, after %s", w.name, display.Round(time.Since(w.began))))
			}
			return db, nil
		}
		if strings.HasPrefix(w.Address, commandline.SQLite) || isFinal(err) || ctx.Err() != nil {
			return nil, err
		}
		now := time.Now()
		w.note(err, now)
		if spent := w.patience.Spent(err, w.began, w.began, now); spent != nil {
			return nil, spent
		}
		pause := backoff.Step()
		if now.Sub(said) >= openReminds {
			w.say(fmt.Sprintf("%s; tried again in %s, and until it can be opened", display.Reason(err), display.Round(pause)))
			said = now
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (w *opening) try(ctx context.Context) (*sqlsink.Sink, error) {
	within, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	db, err := sqlsink.Open(within, w.Config)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("database %s: it cannot be opened within %s: %w", w.name, w.limit, err)
	}
	return db, err
}

func (w *opening) note(err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problem, w.last = err, now
}

// Status shows the database as if it were an informer that is not synced.
func (w *opening) Status() informer.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := informer.Status{LastError: w.problem, LastErrorTime: w.last}
	s.Condition = informer.Condition{Reason: informer.ReasonNotStarted, Message: "opening the database", Since: w.began}
	if w.problem != nil {
		s.FailingSince = w.began
		s.Condition.Reason, s.Condition.Message = informer.ReasonFailing, display.Reason(w.problem)
	}
	return s
}

// isFinal reports whether a PostgreSQL server has answered what only a change of its settings, or
// of the address, can mend. A server that does not answer may do so later, and one that starts,
// ends, or has too many clients says so of itself.
func isFinal(err error) bool {
	unusable, answer := (*sqlsink.UnusableError)(nil), (*pgconn.PgError)(nil)
	if errors.As(err, &unusable) {
		return true
	}
	return errors.As(err, &answer) && len(answer.Code) == 5 && slices.Contains([]string{
		"0A", // it lacks a feature
		"22", // it does not take a value
		"28", // the account or its password
		"3D", // there is no such database
		"3F", // nor schema
		"42", // a right is missing, or a statement makes no sense to it
	}, answer.Code[:2])
}
