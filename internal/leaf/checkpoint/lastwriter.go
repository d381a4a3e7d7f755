package checkpoint

import (
	"io"
	"strings"
)

// LastWriter reads a checkpoint and its journal, and returns which run has written to it last, empty
// if it does not say that.
func LastWriter(from io.Reader) (writer string, err error) {
	r := NewReader(from)
	for err == nil {
		_, _, err = r.Next()
	}
	if err != io.EOF {
		return "", err
	}
	for writer = r.Metadata()[MetadataWriter]; ; {
		record, key, _, err := r.NextRecord()
		if err == io.EOF {
			return writer, nil
		}
		if err != nil {
			return "", err
		}
		if record == Resume && key != "" {
			writer = strings.Clone(key)
		}
	}
}
