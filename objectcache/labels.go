package objectcache

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// labelText is a set of labels as one text: sorted pairs of key and value, each behind its length.
// Equal sets have equal texts. It is labels.Labels.
type labelText string

var _ labels.Labels = labelText("")

// appendLabels appends the text of labels off the wire. It may sort them.
func appendLabels(dst []byte, pairs []wire.Label) []byte {
	ascending := func(a, b wire.Label) int { return bytes.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(pairs, ascending) {
		slices.SortStableFunc(pairs, ascending)
	}
	for i, l := range pairs {
		if i+1 < len(pairs) && bytes.Equal(l.Key, pairs[i+1].Key) {
			continue // the last one counts
		}
		dst = appendText(appendText(dst, l.Key), l.Value)
	}
	return dst
}

// textOfLabels returns the text of a set.
func textOfLabels(set map[string]string) []byte {
	var dst []byte
	for _, key := range slices.Sorted(maps.Keys(set)) {
		dst = appendText(appendText(dst, key), set[key])
	}
	return dst
}

func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// cut returns the first text of t and what follows it.
func (t labelText) cut() (text string, rest labelText) {
	length, shift := 0, 0
	for i := 0; ; i++ {
		length |= int(t[i]&0x7f) << shift
		if shift += 7; t[i] < 0x80 {
			t = t[i+1:]
			return string(t[:length]), t[length:]
		}
	}
}

// Lookup returns the value of a label, and whether the set has it.
func (t labelText) Lookup(label string) (value string, exists bool) {
	for t != "" {
		var key string
		key, t = t.cut()
		value, t = t.cut()
		if key == label {
			return value, true
		}
	}
	return "", false
}

// Has reports whether the set has a label.
func (t labelText) Has(label string) bool {
	_, has := t.Lookup(label)
	return has
}

// Get returns the value of a label, empty if the set has none.
func (t labelText) Get(label string) string {
	value, _ := t.Lookup(label)
	return value
}
