package informer

import (
	"io"

	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/keytable"
)

var (
	_ io.WriterTo   = (*ResourceVersionStorage)(nil)
	_ io.ReaderFrom = (*ResourceVersionStorage)(nil)
)

// WriteTo writes all keys, with their resource versions and UIDs, in the format
// that docs/checkpoint-format.md describes and ReadFrom reads. It returns the number
// of bytes that w took, and the error of w.
//
// The storage may change meanwhile; it is locked for about a tenth of a millisecond
// at a time, and not while w writes. Every entry is then as it was at some moment
// during the call. A key that was there all the time is written, and one that was
// never there is not; one that came or went meanwhile may be. So a resource version
// up to which all was acknowledged before the call is not newer than what is
// written: whoever watches from there on hears of everything that is missing. Of a
// Replace or a ReadFrom meanwhile nothing is written: what they replace is.
func (c *ResourceVersionStorage) WriteTo(w io.Writer) (int64, error) {
	cw := checkpoint.NewWriter(w)
	err := c.writeEntries(cw)
	if err == nil {
		err = cw.Close()
	}
	return cw.Written(), err
}

// writeEntries writes all entries to w as the table has them. Sorted by key, they
// would take a third less, and sorting them would take longer than all else.
func (c *ResourceVersionStorage) writeEntries(w *checkpoint.Writer) (err error) {
	const atOnce = 1000
	c.mu.RLock()
	table := c.reading() // a cursor is of one table
	c.mu.RUnlock()
	add := func(key string, version *keytable.Binary) {
		if err == nil {
			err = w.Entry(key, version)
		}
	}
	for cursor := keytable.Cursor(0); ; {
		c.mu.RLock()
		cursor = table.LendFrom(cursor, atOnce, add)
		c.mu.RUnlock()
		if err == nil {
			err = w.Push()
		}
		if err != nil || cursor == 0 {
			return err
		}
	}
}

// ReadFrom forgets everything and stores what WriteTo wrote instead, as Replace
// does, UIDs included. It reads what this version of the library and all older ones
// have written. It returns the number of bytes read, which are those of the
// checkpoint and not one more, whatever r is: a checkpoint may be followed by
// something else. The file of an informer's checkpoint has a journal behind it, and is read to
// its end. Bytes are asked for in pieces of about 64 KiB, so r need not
// buffer.
//
// Nothing changes before the checksum was found right. Any error is a
// *CheckpointError, and leaves the storage as it was. The storage is not locked
// while r is read; what others write meanwhile is forgotten. Until it returns, the
// memory is that of both contents and of a block of the checkpoint, 64 KiB as a rule
// and 4 MiB at most.
func (c *ResourceVersionStorage) ReadFrom(r io.Reader) (int64, error) {
	cr := checkpoint.NewReader(r)
	table, err := c.read(cr)
	s := savedState{table: table}
	if err == nil && cr.Journaled() {
		err = s.replay(cr)
	}
	if err != nil {
		return cr.Read(), err
	}
	c.adopt(s)
	return cr.Read(), nil
}

// read reads all entries into a table that can take the place of the storage's.
func (c *ResourceVersionStorage) read(r *checkpoint.Reader) (*keytable.Table, error) {
	c.mu.RLock()
	table := c.reading().NewAfter()
	c.mu.RUnlock()
	loader := keytable.NewLoader(table)
	for {
		key, version, err := r.Next()
		if err == io.EOF {
			loader.Flush()
			return table, nil
		}
		if err != nil {
			return nil, err
		}
		loader.Set(key, version)
	}
}

// adopt makes what was read the storage's.
func (c *ResourceVersionStorage) adopt(s savedState) {
	table := s.table
	c.mu.Lock()
	defer c.mu.Unlock()
	for table.Generation() < c.reading().Generation() { // others began meanwhile
		table.Begin()
	}
	c.edits++
	c.table, c.unsettled = table, s.begun
}
