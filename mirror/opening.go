package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/registry"
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
	name     string
	open     func(context.Context) (database, error)
	final    func(error) bool // trying again does not help
	patience *patience
	limit    time.Duration // of one try
	say      func(line string)
	began    time.Time

	mu      sync.Mutex
	problem error // of the last try
	last    time.Time
}

// opening prepares to open the database that the options name. With --once it is given up as a
// cluster is.
func (o options) opening(say func(line string)) *opening {
	w := &opening{name: o.db, open: o.open, final: func(error) bool { return true }, limit: openPatience, say: say, began: time.Now()}
	limit := time.Duration(0)
	if o.once {
		limit = o.timeout
		w.limit = min(w.limit, limit)
	}
	w.patience = newPatience(limit, w.began)
	if o.postgres != nil {
		w.name, w.final = nameOf(o.postgres.ConnConfig), isFinal
	}
	return w
}

// Open opens the database. The error is one that trying again does not help against, or says that
// there is no more patience, or why ctx has ended.
func (w *opening) Open(ctx context.Context) (database, error) {
	backoff := newRetryBackoff()
	var said time.Time
	for {
		db, err := w.try(ctx)
		if err == nil {
			if !said.IsZero() {
				w.say(fmt.Sprintf("database %s: open, after %s", w.name, round(time.Since(w.began))))
			}
			return db, nil
		}
		if w.final(err) || ctx.Err() != nil {
			return nil, err
		}
		now := time.Now()
		w.note(err, now)
		w.patience.Failed(err)
		if spent := w.patience.Spent(now, 0); spent != nil {
			return nil, spent
		}
		pause := backoff.Step()
		if now.Sub(said) >= openReminds {
			w.say(fmt.Sprintf("%s; tried again in %s, and until it can be opened", oneLine(err), round(pause)))
			said = now
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (w *opening) try(ctx context.Context) (database, error) {
	within, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	db, err := w.open(within)
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
		s.Condition.Reason, s.Condition.Message = informer.ReasonFailing, oneLine(w.problem)
	}
	return s
}

// ShowDatabase adds the database until it is open, so that the process is not ready before.
func (b *board) ShowDatabase(source registry.Source) (remove func()) {
	return b.informers.Add(registry.Labels{Informer: "database"}, source)
}

// isFinal reports whether a PostgreSQL server has answered what only a change of its settings, or
// of the address, can mend. A server that does not answer may do so later, and one that starts,
// ends, or has too many clients says so of itself.
func isFinal(err error) bool {
	state := stateOf(err)
	if isUnusable(err) || state == "" {
		return isUnusable(err)
	}
	return slices.Contains([]string{
		"0A", // it lacks a feature
		"22", // it does not take a value
		"28", // the account or its password
		"3D", // there is no such database
		"3F", // nor schema
		"42", // a right is missing, or a statement makes no sense to it
	}, state[:2])
}

// oneLine is the text of an error of pgx, which has a line for each address of the server that was
// tried.
func oneLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	first, rest := lines[0], slices.Compact(lines[1:])
	return strings.TrimSpace(first + " " + strings.Join(rest, ", "))
}

// stopped is err where a run was ended by its user before the database was open.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return errors.New("stopped before the database was open")
}
