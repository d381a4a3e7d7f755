package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// tables are how a kind of database makes the tables.
type tables struct {
	formats []string            // make those of each version out of those of the version before
	mark    string              // says that they are this package's, and their version
	defined string              // finds a text with the definition of the column $1
	define  func(Column) string // the definition of a column
	add     func([]Column) string
	// misfits removes the rows that do not fit the columns, and returns them.
	misfits func(ctx context.Context, tx *sql.Tx, columns []Column) ([]misfit, error)
}

// Prepare brings the tables from a version to the newest one, or makes them if it is 0, and adds the
// columns that are missing, without the rows that do not fit. The error is an *UnusableError if one is
// defined otherwise.
func (t tables) Prepare(ctx context.Context, tx *sql.Tx, format int, columns []Column) error {
	for ; format < len(t.formats); format++ {
		if _, err := tx.ExecContext(ctx, t.formats[format]+fmt.Sprintf(t.mark, format+1)); err != nil {
			return fmt.Errorf("cannot create its tables: %w", err)
		}
	}
	var missing []Column
	for _, c := range columns {
		var defined string
		err := tx.QueryRowContext(ctx, t.defined, c.Name).Scan(&defined)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			missing = append(missing, c)
		case err != nil:
			return err
		case !strings.Contains(defined, t.define(c)):
			return &UnusableError{fmt.Sprintf("its table objects has a column %s that is defined otherwise", c.Name),
				"give the column another name, or drop that one: ALTER TABLE objects DROP COLUMN " + c.Name}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := t.addColumns(ctx, tx, missing); err != nil {
		return fmt.Errorf("cannot add its columns: %w", err)
	}
	return nil
}

// addColumns adds columns. It looks for rows that do not fit only if the database finds one, because
// to add a column tells that as fast as any search.
func (t tables) addColumns(ctx context.Context, tx *sql.Tx, missing []Column) error {
	if _, err := tx.ExecContext(ctx, `SAVEPOINT columns`); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, t.add(missing))
	if err == nil {
		return nil
	}
	if _, failed := tx.ExecContext(ctx, `ROLLBACK TO SAVEPOINT columns`); failed != nil || isTrouble(err) {
		return err
	}
	removed, failed := t.misfits(ctx, tx, missing)
	if failed != nil || len(removed) == 0 {
		return errors.Join(err, failed)
	}
	if err := listAnew(ctx, tx, removed); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, t.add(missing)); err != nil {
		return err
	}
	logMisfits(ctx, removed)
	return nil
}

// errNewerFormat says that a newer version of this package has made the tables.
func errNewerFormat(theirs string, own int) error {
	return &UnusableError{fmt.Sprintf("its tables have format %s, of a newer version of this program, which knows formats up to %d", theirs, own),
		"it was not changed: use that version"}
}

// transact commits what f does, or undoes it if f fails or panics.
func transact(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it is over, and SQLite itself undoes it after a full disk
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
