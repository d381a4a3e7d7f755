package podserver

import (
	"bytes"
	"fmt"
)

// template is the encoding of one pod, list item or event, with the places of
// the placeholders in it.
type template struct {
	bytes   []byte
	patches []patch
}

type patch struct {
	at    int
	field field
}

func newTemplate(encoded []byte) template {
	t := template{bytes: encoded}
	for f, placeholder := range placeholders {
		found := false
		for at := 0; ; {
			i := bytes.Index(encoded[at:], []byte(placeholder))
			if i < 0 {
				break
			}
			at += i
			t.patches = append(t.patches, patch{at, field(f)})
			at += len(placeholder)
			found = true
		}
		if !found {
			panic(fmt.Sprintf("a template without %q", placeholder))
		}
	}
	return t
}

func (t template) size() int { return len(t.bytes) }

// patch writes the fields of id over those in one copy of the template.
func (t template) patch(into []byte, id *identity) {
	for _, p := range t.patches {
		copy(into[p.at:], id[p.field])
	}
}

// tiles are copies of a template, side by side, that are patched and sent again
// and again: a pod costs its patches and not a copy of all of its bytes.
type tiles struct {
	template
	buf []byte
	id  *identity
}

// tilesBytes is about how much is sent at once.
const tilesBytes = 256 << 10

func newTiles(t template) *tiles {
	return &tiles{t, bytes.Repeat(t.bytes, max(1, tilesBytes/t.size())), newIdentity()}
}

func (t *tiles) capacity() int { return len(t.buf) / t.size() }

// render returns n patched tiles, n at most the capacity. They live until the
// next call. set makes the identity that of the k-th.
func (t *tiles) render(n int, set func(id *identity, k int)) []byte {
	for k := range n {
		set(t.id, k)
		t.patch(t.buf[k*t.size():], t.id)
	}
	return t.buf[:n*t.size()]
}
