package sqlsink

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// refusals are what the server says of data that it refuses, as classes of its codes: that jsonb
// cannot have it, or that it is beyond a limit of jsonb, such as its depth; for constraints, checks
// of views, and triggers of users.
var refusals = []string{"22", "54", "23", "44", "P0"}

// isRefused reports whether the server refuses what a row has, and not how many they are, or when.
func isRefused(err error) bool {
	state := stateOf(err)
	return state != "" && slices.Contains(refusals, state[:2])
}

const (
	// maxTroubles is how many parts in a row may meet a trouble of the server before the rest of the
	// rows is left for later. A single row of 500 meets ten.
	maxTroubles = 16
	// longestTrouble is for how long a transaction looks for the rows that a trouble is about, while
	// all that it has written is locked.
	longestTrouble = 5 * time.Second
)

// bisection writes the rows of a batch that was refused, or met a trouble of the server. It tries all
// of them first. It tries each part that fails in halves, down to the rows that fail by themselves.
// Everything is in one transaction, with a savepoint for each part.
type bisection struct {
	of      place
	conn    *pgx.Conn
	columns []computed
	refused informer.FailedEvents
	delayed int // how many of these come later
	trouble trouble
}

// trouble is what keeps the server from writing rows that are not at fault.
type trouble struct {
	began time.Time
	inRow int // how many parts have met it since one was written
	last  error
}

func (t *trouble) note(err error) {
	if t.last == nil {
		t.began = time.Now()
	}
	t.inRow++
	t.last = err
}

// isLasting reports whether the rest of the rows is to be left for later.
func (t *trouble) isLasting() bool {
	return t.last != nil && (t.inRow > maxTroubles || time.Since(t.began) > longestTrouble)
}

// Part stages rows, and then merges them. There is at least one row, because a trigger of a user may
// refuse even a statement without rows, and halving would never end.
func (b *bisection) Part(ctx context.Context, rows []row, staged bool) error {
	if b.trouble.isLasting() {
		b.delay(rows)
		return nil
	}
	err := b.try(ctx, rows, staged)
	if isRefused(err) && len(rows) == 1 && !staged {
		for _, r := range softer(rows[0]) {
			if err = b.try(ctx, []row{r}, false); !isRefused(err) {
				break
			}
		}
	}
	switch {
	case err == nil && !staged:
		return b.Part(ctx, rows, true)
	case err == nil:
		b.trouble.inRow = 0
		return nil
	case isTrouble(err):
		b.trouble.note(err)
		if len(rows) == 1 {
			b.delay(rows)
			return nil
		}
	case !isRefused(err):
		return err
	case len(rows) == 1:
		if staged {
			err = b.ofColumn(ctx, rows[0], err)
		}
		b.refused = append(b.refused, informer.FailedEvent{Index: rows[0].event, Err: err})
		return nil
	}
	first, second := rows[:len(rows)/2], rows[len(rows)/2:]
	if rand.IntN(2) == 0 { // so that no row stands behind others for ever that are locked
		first, second = second, first
	}
	if err := b.Part(ctx, first, staged); err != nil {
		return err
	}
	return b.Part(ctx, second, staged)
}

// ofColumn returns err with the name of the column before it whose value a staged row is refused for, if
// it is a column's. The server says what the value is, and not where.
func (b *bisection) ofColumn(ctx context.Context, r row, err error) error {
	if !strings.HasPrefix(stateOf(err), "22") {
		return err
	}
	for _, c := range b.columns {
		if isRefused(b.ask(ctx, r, c)) {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return err
}

// ask computes a column of a staged row.
func (b *bisection) ask(ctx context.Context, r row, c computed) error {
	if _, err := b.conn.Exec(ctx, `SAVEPOINT asked`); err != nil {
		return err
	}
	in := b.of.resource
	_, err := b.conn.Exec(ctx, `SELECT `+c.value+` FROM (SELECT object, $1::text AS "group", $2::text AS resource FROM staged_rows WHERE n = $3) AS objects`,
		in.Group, in.Resource, r.event)
	if _, failed := b.conn.Exec(ctx, `ROLLBACK TO SAVEPOINT asked; RELEASE SAVEPOINT asked`); failed != nil {
		return failed
	}
	return err
}

// delay leaves rows for later.
func (b *bisection) delay(rows []row) {
	for _, r := range rows {
		b.refused = append(b.refused, informer.FailedEvent{Index: r.event, Err: b.trouble.last, Later: true})
	}
	b.delayed += len(rows)
}

// try stages rows, or merges them if they are staged, or undoes it if that fails for the rows or for a
// trouble of the server.
func (b *bisection) try(ctx context.Context, rows []row, staged bool) (err error) {
	// It is sent by itself, because the statements that follow are prepared first, and that may fail.
	if _, err := b.conn.Exec(ctx, `SAVEPOINT part`); err != nil {
		return err
	}
	var batch pgx.Batch
	if staged {
		merge(&batch, b.of, rows)
	} else {
		err = stage(ctx, b.conn, &batch, rows)
	}
	if err == nil {
		batch.Queue(`RELEASE SAVEPOINT part`)
		err = send(ctx, b.conn, &batch)
	}
	if isRefused(err) || isTrouble(err) {
		if _, failed := b.conn.Exec(ctx, `ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part`); failed != nil {
			return failed
		}
	}
	return err
}

// softer returns a row in forms that jsonb may take where it refuses the object as it came: with the
// object as Go writes it, which has no half of a character and nothing that is not UTF-8; and
// with a stand-in for it, its metadata alone. An object that Go does not take either stays as it is,
// as far as it is UTF-8.
func softer(r row) []row {
	text := r.object
	object, err := r.decode()
	if err == nil {
		r.object, err = json.Marshal(object.Object)
	}
	if err != nil {
		object, r.object = &unstructured.Unstructured{}, bytes.ToValidUTF8(text, []byte("\ufffd"))
	}
	standIn := r
	standIn.standIn, _ = json.Marshal(map[string]any{ // strings alone cannot fail
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": map[string]string{
			"namespace": r.namespace, "name": r.name, "uid": r.uid, "resourceVersion": r.resourceVersion,
		}})
	return []row{r, standIn}
}

// withoutNUL replaces each NUL, the one character that jsonb cannot have, by U+FFFD. A backslash that
// is itself escaped begins no escape.
var withoutNUL = strings.NewReplacer(`\\`, `\\`, `\u0000`, `\ufffd`)
