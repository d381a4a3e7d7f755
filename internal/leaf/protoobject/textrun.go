package protoobject

import (
	"maps"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// textRun is the map of strings that came last in one field of the metadata. Objects next to each
// other in a list have many equal ones, such as the labels of one deployment's pods. To copy a map
// takes less than to fill one.
type textRun struct {
	run  []byte            // the entries in the message
	made map[string]string // nil until the run came twice
}

// copied returns a copy of the map, and where its entries end in b; 0 if b begins with others.
func (t *textRun) copied(b []byte) (made map[string]string, end int) {
	if t == nil || t.made == nil || len(b) < len(t.run) || string(b[:len(t.run)]) != string(t.run) {
		return nil, 0
	}
	return maps.Clone(t.made), len(t.run)
}

// put remembers a map when its entries come the second time in a row.
func (t *textRun) put(run []byte, made map[string]string) {
	switch {
	case t == nil || len(run) > maxRun:
	case string(run) == string(t.run):
		t.made = maps.Clone(made)
	default:
		t.run, t.made = append(t.run[:0], run...), nil
	}
}

// texts decodes entries of a map that follow one another in a message, or copies those that came
// last. It returns where they end, 0 if there is something that it does not expect.
func (d *decoder) texts(into *map[string]string, last *textRun, tag uint64, b []byte) (end int) {
	if *into == nil {
		if *into, end = last.copied(b); end > 0 {
			return end
		}
	} else {
		last = nil
	}
	n, end := wire.RunOf(tag, b)
	if *into == nil {
		*into = make(map[string]string, n)
	}
	for i := 0; i < end; {
		_, _, entry, to := wire.FieldAt(b, i)
		key, value, ok := d.keyAndValue(entry)
		if !ok {
			return 0
		}
		(*into)[key] = d.words.String(value)
		i = to
	}
	last.put(b[:end], *into)
	return end
}
