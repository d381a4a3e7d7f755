package main

import (
	"errors"
	"io"
	"io/fs"
)

// parts reads a checkpoint from rows that have a part of it each, one after the other.
type parts struct {
	rows  partRows
	close func() error
	part  []byte
}

// partRows are rows of a database that have one column.
type partRows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}

// newParts reads the first part. The error is fs.ErrNotExist where there is none. After an error,
// the rows are closed.
func newParts(rows partRows, end func() error) (*parts, error) {
	r := &parts{rows: rows, close: end}
	if err := r.next(); err != nil {
		if err == io.EOF {
			err = fs.ErrNotExist
		}
		return nil, errors.Join(err, end())
	}
	return r, nil
}

func (r *parts) Read(b []byte) (int, error) {
	for len(r.part) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.part)
	r.part = r.part[n:]
	return n, nil
}

func (r *parts) next() error {
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	return r.rows.Scan(&r.part)
}

func (r *parts) Close() error { return r.close() }
