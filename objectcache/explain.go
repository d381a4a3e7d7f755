package objectcache

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Explanation says what a store has in memory.
type Explanation struct {
	// Objects is how many objects the store has, SizeBytes the memory that it holds for them.
	Objects   int
	SizeBytes int64
	// Sampled is how many objects were decoded for the rest.
	Sampled int
	// Encoded is the length of the sampled objects in their encoding, before compression, and JSON
	// their length as compact JSON, which is what Paths count.
	Encoded, JSON int64
	// Paths are the fields, those with the most bytes first. A field counts what is within it, so
	// that "spec" is not less than "spec.containers". Fields with less than a thousandth of all
	// bytes are left out.
	Paths []PathSize
}

// PathSize is what one field takes in the sampled objects.
type PathSize struct {
	// Path leads to the field. Elements of an array are "[]"; a dot in a name is written `\.`.
	Path string
	// Values is how often the field occurs, Bytes the length of its names and values as JSON.
	Values int
	Bytes  int64
}

// Explain says which fields take how many bytes, in a sample of so many objects, spread evenly over
// the store; zero or less samples all. Each of them is decoded. What cannot be decoded is left out.
//
// The bytes are those of JSON. Compression takes out what siblings have in common, so a field that
// differs in each object takes a larger part of SizeBytes than of these.
func (s *Store) Explain(sample int) Explanation {
	found, _ := s.Select(Query{}) // fails for unknown indexes only
	e := Explanation{Objects: len(found), SizeBytes: s.SizeBytes()}
	if sample <= 0 || sample > len(found) {
		sample = len(found)
	}
	sizes := map[string]*PathSize{}
	for i := range sample {
		e.add(found[i*len(found)/sample], sizes)
	}
	for _, size := range sizes {
		if size.Bytes*1000 >= e.JSON {
			e.Paths = append(e.Paths, *size)
		}
	}
	slices.SortFunc(e.Paths, func(a, b PathSize) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Path, b.Path))
	})
	return e
}

// add counts one object.
func (e *Explanation) add(o Stored, sizes map[string]*PathSize) {
	u := &unstructured.Unstructured{}
	if o.DecodeInto(u) != nil {
		return
	}
	e.Sampled++
	_ = o.read(func(encoded []byte) error { // it was read just now
		e.Encoded += int64(len(encoded))
		return nil
	})
	e.JSON += measure(u.Object, "", sizes)
}

// measure returns the length of a value as JSON, and counts what is within it.
func measure(value interface{}, path string, sizes map[string]*PathSize) int64 {
	total := int64(0)
	switch value := value.(type) {
	case map[string]interface{}:
		total = int64(max(2, len(value)+1)) // braces and commas
		for _, name := range slices.Sorted(maps.Keys(value)) {
			within := strings.TrimPrefix(path+"."+strings.ReplaceAll(name, ".", `\.`), ".")
			n := textLength(name) + 1 + measure(value[name], within, sizes)
			count(sizes, within, n)
			total += n
		}
	case []interface{}:
		total = int64(max(2, len(value)+1))
		for _, element := range value {
			n := measure(element, path+"[]", sizes)
			count(sizes, path+"[]", n)
			total += n
		}
	case string:
		total = textLength(value)
	default:
		total = scalarLength(value)
	}
	return total
}

func count(sizes map[string]*PathSize, path string, n int64) {
	of := sizes[path]
	if of == nil {
		of = &PathSize{Path: path}
		sizes[path] = of
	}
	of.Values++
	of.Bytes += n
}

func textLength(text string) int64 {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' {
			return scalarLength(text)
		}
	}
	return int64(len(text)) + 2
}

func scalarLength(value interface{}) int64 {
	text, _ := json.Marshal(value) // a decoded value can be encoded
	return int64(len(text))
}

// String is a table for a log or a terminal.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d objects in %d bytes; of %d of them, %d bytes encoded, %d as JSON:\n", e.Objects, e.SizeBytes, e.Sampled, e.Encoded, e.JSON)
	for _, p := range e.Paths {
		fmt.Fprintf(&b, "%6.1f %% %12d bytes %9d values  %s\n", 100*float64(p.Bytes)/float64(e.JSON), p.Bytes, p.Values, p.Path)
	}
	return b.String()
}
