package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/rvinformer/informer/internal/leaf/redact"
)

// Quote returns head, the beginning of a body that is no list or watch, for an error to show:
// without credentials, and nil where it may be of a Kubernetes object, whose content must not come
// into logs.
func Quote(head []byte) []byte {
	text := bytes.TrimLeft(head, " \t\r\n\ufeff")
	if len(text) == 0 || bytes.Contains(text, []byte("apiVersion")) {
		return nil
	}
	switch text[0] {
	case '{':
		if !isForeign(text) {
			return nil
		}
	case '[', '"':
		return nil
	}
	return quoteText(head)
}

// quoteStatus is Quote for the beginning of a Status.
func quoteStatus(head []byte) []byte {
	if bytes.Contains(head, []byte(`"items"`)) || bytes.Contains(head, []byte(`"object"`)) {
		return nil
	}
	return quoteText(head)
}

// isForeign reports whether text is a whole JSON object that has nothing of a Kubernetes object or
// list.
func isForeign(text []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return false
	}
	for _, name := range []string{"kind", "metadata", "items", "type", "object", "data", "stringData", "spec"} {
		if _, ok := members[name]; ok {
			return false
		}
	}
	return true
}

// quoteText returns head without credentials, and nil where it is no text.
func quoteText(head []byte) []byte {
	for i, r := range string(head) {
		cut := i > len(head)-utf8.UTFMax // a rune may be cut at the end
		if r == utf8.RuneError && !cut || r < ' ' && r != '\t' && r != '\r' && r != '\n' {
			return nil
		}
	}
	return []byte(redact.Text(string(head)))
}
