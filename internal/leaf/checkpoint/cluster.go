package checkpoint

import (
	"bytes"
	"io"
)

// MaxHead is how many bytes at the beginning of a checkpoint have its source, unless selectors or a
// redelivery are very long.
const MaxHead = 4096

// SourceOfHead returns the source that the first bytes of a checkpoint name, nothing if they do not.
func SourceOfHead(head []byte) Source {
	r := NewReader(bytes.NewReader(head))
	_, _, _ = r.Next() // that the rest is cut off does not matter
	return SourceFrom(r.Metadata())
}

// WriteOf writes a checkpoint that names a source, and has nothing else.
func WriteOf(s Source, to io.Writer) error {
	w := NewWriter(to)
	if err := w.AllMetadata(s.Metadata()); err != nil {
		return err
	}
	return w.Close()
}
