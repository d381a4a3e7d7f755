package known

import (
	"io"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// WriteTo writes all versions as a checkpoint without metadata.
func (v *Versions) WriteTo(w io.Writer) (int64, error) {
	cw := checkpoint.NewWriter(w)
	err := v.writeEntries(cw)
	if err == nil {
		err = cw.Close()
	}
	return cw.Written(), err
}

// WriteCheckpoint writes the versions as WriteTo does, and metadata before them. Begun are keys
// that the handler may have begun to take in. They are written without a version: their deletion
// is then delivered.
func (v *Versions) WriteCheckpoint(cw *checkpoint.Writer, metadata map[string]string, begun []string) error {
	edits := v.Edits()
	if err := cw.AllMetadata(metadata); err != nil {
		return err
	}
	for _, key := range begun {
		if err := cw.Entry(key, &keytable.Binary{}); err != nil {
			return err
		}
	}
	// The entries come after the begun keys, and so count, where a key has come to be known
	// meanwhile.
	if err := v.writeEntries(cw); err != nil {
		return err
	}
	if v.Edits() != edits { // a watch from the resource version does not repeat the edits
		if err := cw.Metadata(checkpoint.MetadataResourceVersion, ""); err != nil {
			return err
		}
	}
	return cw.Close()
}

// writeEntries writes all entries to w as the table has them. Sorted by key, they
// would take a third less, and sorting them would take longer than all else.
func (v *Versions) writeEntries(w *checkpoint.Writer) (err error) {
	const atOnce = 1000
	v.mu.RLock()
	table := v.reading() // a cursor is of one table
	v.mu.RUnlock()
	add := func(key string, version *keytable.Binary) {
		if err == nil {
			err = w.Entry(key, version)
		}
	}
	for cursor := keytable.Cursor(0); ; {
		v.mu.RLock()
		cursor = table.LendFrom(cursor, atOnce, add)
		v.mu.RUnlock()
		if err == nil {
			err = w.Push()
		}
		if err != nil || cursor == 0 {
			return err
		}
	}
}

// ReadFrom replaces everything by a checkpoint that WriteTo or a keeper has written, and its
// journal. It is an edit. It changes nothing before the checksum was found right.
func (v *Versions) ReadFrom(r io.Reader) (int64, error) {
	cr := checkpoint.NewReader(r)
	table, err := v.readTable(cr)
	s := Saved{table: table, Metadata: cr.Metadata()}
	if err == nil && cr.Journaled() {
		err = s.replay(cr)
	}
	if err != nil {
		return cr.Read(), err
	}
	v.Adopt(s)
	return cr.Read(), nil
}

// readTable reads all entries into a table that can take the place of the one in use.
func (v *Versions) readTable(r *checkpoint.Reader) (*keytable.Table, error) {
	v.mu.RLock()
	table := v.reading().NewAfter()
	v.mu.RUnlock()
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
