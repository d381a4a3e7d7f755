package sqlsink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bisection merges staged rows in halves, halves of those that are refused, and so on, down to the
// rows that are refused by themselves. All is in one transaction, with a savepoint for each part.
type bisection struct {
	of     place
	rows   []row
	failed informer.FailedEvents
}

// Merge merges the rows, which were refused together. Constraints that wait for the commit are
// checked at once, or the commit would fail for the sake of one row.
func (b *bisection) Merge(ctx context.Context, conn *pgx.Conn) error {
	b.failed = nil // of a transaction that was tried again
	if _, err := conn.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
		return err
	}
	return b.halves(ctx, conn, 0, len(b.rows))
}

func (b *bisection) halves(ctx context.Context, conn *pgx.Conn, first, end int) error {
	middle := (first + end) / 2
	if err := b.part(ctx, conn, first, middle); err != nil {
		return err
	}
	return b.part(ctx, conn, middle, end)
}

func (b *bisection) part(ctx context.Context, conn *pgx.Conn, first, end int) error {
	var batch pgx.Batch
	batch.Queue(`SAVEPOINT part`)
	mergeStaged(&batch, b.of, first, end)
	batch.Queue(`RELEASE SAVEPOINT part`)
	err := refusedBy(conn.SendBatch(ctx, &batch).Close(), mergeRefusals...)
	refused := (*refusedError)(nil)
	if !errors.As(err, &refused) {
		return err
	}
	if _, err := conn.Exec(ctx, `ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part`); err != nil {
		return err
	}
	if end-first > 1 {
		return b.halves(ctx, conn, first, end)
	}
	b.failed = append(b.failed, failedEvent(b.rows[first], refused.err))
	return nil
}

// escapedNUL is the one character of JSON that jsonb cannot have.
var escapedNUL = []byte(`\u0000`)

// hasNUL reports whether a JSON text may have an escaped NUL.
func hasNUL(text []byte) bool { return bytes.Contains(text, escapedNUL) }

// withoutNUL replaces each NUL by U+FFFD. A backslash that is itself escaped begins no escape.
func withoutNUL(text []byte) []byte {
	var b bytes.Buffer
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			b.Write(text)
			return b.Bytes()
		}
		b.Write(text[:i])
		if bytes.HasPrefix(text[i:], escapedNUL) {
			b.WriteString(`\ufffd`)
			text = text[i+len(escapedNUL):]
			continue
		}
		b.Write(text[i : i+2])
		text = text[i+2:]
	}
}

// soften returns the rows in a form that the staged rows can have, and those that have none. It
// takes the objects in the form of encode, which has no half of a character and nothing that is not
// UTF-8, and gives those that jsonb refuses even so a stand-in: their metadata alone.
func (p *postgres) soften(ctx context.Context, rows []row) (soft []row, refused informer.FailedEvents, err error) {
	for _, r := range rows {
		err := p.takes(ctx, r)
		if isRefused(err) && !r.gone {
			object := r.soften()
			if err = p.takes(ctx, r); isRefused(err) {
				if r.standIn, err = standInOf(r, object); err != nil {
					return nil, nil, err
				}
				err = p.takes(ctx, r)
			}
		}
		switch {
		case isRefused(err):
			refused = append(refused, failedEvent(r, errors.Unwrap(err)))
		case err != nil:
			return nil, nil, err
		default:
			soft = append(soft, r)
		}
	}
	return soft, refused, nil
}

// isRefused reports whether err is a *refusedError.
func isRefused(err error) bool {
	refused := (*refusedError)(nil)
	return errors.As(err, &refused)
}

// takes asks the server whether it takes the values of a row.
func (p *postgres) takes(ctx context.Context, r row) error {
	values := r.staged(0)
	var taken bool
	return refusedBy(p.pool.QueryRow(ctx, `SELECT ($1::integer, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::bigint, $8::jsonb, $9::text) IS NOT NULL`,
		values[:]...).Scan(&taken), stageRefusals...)
}

// soften gives the object of a row the form of encode, and returns it. What Go does not take either
// stays as it is, as far as it is UTF-8.
func (r *row) soften() *unstructured.Unstructured {
	object, err := r.decode()
	if err == nil {
		var text []byte
		if text, err = encode(object); err == nil {
			r.object = text
			return object
		}
	}
	r.object = bytes.ToValidUTF8(r.object, []byte("\ufffd"))
	return &unstructured.Unstructured{}
}

// standInOf is the metadata of an object alone.
func standInOf(r row, object *unstructured.Unstructured) ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": map[string]string{
			"namespace": r.namespace, "name": r.name, "uid": r.uid, "resourceVersion": r.resourceVersion,
		}})
}
