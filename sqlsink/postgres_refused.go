package sqlsink

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// refusals are what the server says of data that it refuses, as classes of its codes: of what jsonb
// cannot have, or what is beyond a limit of it, such as its depth; for constraints, checks of views,
// and triggers of users.
var refusals = []string{"22", "54", "23", "44", "P0"}

// isRefused reports whether the server refuses what a row has, and not how many they are, or when.
func isRefused(err error) bool {
	state := stateOf(err)
	return state != "" && slices.Contains(refusals, state[:2])
}

// bisection does something with rows: with all of them, with halves of those that are refused
// together, and so on, down to the rows that are refused by themselves. All is in one transaction,
// with a savepoint for each part.
type bisection struct {
	conn    *pgx.Conn
	do      func(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, first, end int) error
	refused func(ctx context.Context, i int, err error) error
}

// Part does it with the rows from first to end. There is at least one row, because a trigger of a
// user may refuse even a statement without rows, and halving would never end.
func (b *bisection) Part(ctx context.Context, first, end int) error {
	err := b.Try(ctx, first, end)
	switch {
	case !isRefused(err):
		return err
	case end-first == 1:
		return b.refused(ctx, first, err)
	}
	middle := (first + end) / 2
	if err := b.Part(ctx, first, middle); err != nil {
		return err
	}
	return b.Part(ctx, middle, end)
}

// Try does it with the rows from first to end, or undoes it if it is refused.
func (b *bisection) Try(ctx context.Context, first, end int) error {
	var batch pgx.Batch
	batch.Queue(`SAVEPOINT part`)
	err := b.do(ctx, b.conn, &batch, first, end)
	if err == nil {
		batch.Queue(`RELEASE SAVEPOINT part`)
		err = send(ctx, b.conn, &batch)
	}
	if isRefused(err) {
		if _, failed := b.conn.Exec(ctx, `ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part`); failed != nil {
			return failed
		}
	}
	return err
}

// stageParts stages the rows that the server takes, some of them in a softer form.
func (w *writing) stageParts(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
	w.failed = nil // of a transaction that was tried again
	if err := send(ctx, conn, batch); err != nil {
		return err
	}
	b := bisection{conn: conn, do: w.stage}
	b.refused = func(ctx context.Context, i int, err error) error {
		for _, r := range softer(w.rows[i]) {
			w.rows[i] = r
			if err = b.Try(ctx, i, i+1); !isRefused(err) {
				return err
			}
		}
		return w.refuse(ctx, i, err)
	}
	return b.Part(ctx, 0, len(w.rows))
}

// mergeParts merges the staged rows that the database takes. Constraints that wait for the commit
// are checked at once, or the commit would fail for the sake of one row.
func (w *writing) mergeParts(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch) error {
	if _, err := conn.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
		return err
	}
	b := bisection{conn: conn, do: w.merge, refused: w.refuse}
	batch.Queue(`TRUNCATE staged_rows`)
	return b.Part(ctx, 0, len(w.rows))
}

// softer returns a row in forms that jsonb may take where it refuses the object as it came: with the
// object in the form of encode, which has no half of a character and nothing that is not UTF-8; and
// with a stand-in for it, its metadata alone. An object that Go does not take either stays as it is,
// as far as it is UTF-8.
func softer(r row) []row {
	if r.gone {
		return nil
	}
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
