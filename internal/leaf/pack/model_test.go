package pack_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/leaf/pack"
)

// stored is what the model knows of a record.
type stored struct {
	head string
	data []byte
	ref  pack.Ref
}

// held is a view that is kept, and what it has to say for ever.
type held struct {
	stored
	view pack.Record
}

func (h held) check(t require.TestingT) {
	require.Equal(t, h.head, string(h.view.Head()))
	got, err := h.view.Append([]byte("before"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(append([]byte("before"), h.data...), got), "record %q of %d bytes", h.head, len(h.data))
}

// texts draws objects: alike within a family, of every length, and noise.
func texts(t *rapid.T) (like string, data []byte) {
	family := rapid.Uint64Range(0, 5).Draw(t, "family")
	r := rand.New(rand.NewPCG(family, 7))
	n := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(100, 4000), rapid.SampledFrom([]int{20_000, 65_535, 65_536, 65_537, 200_000})).Draw(t, "length")
	data = make([]byte, n)
	for k := range data {
		data[k] = "abcdefgh"[r.IntN(8)]
	}
	if rapid.IntRange(0, 9).Draw(t, "noise") == 0 {
		r = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		for k := range data {
			data[k] = byte(r.Uint32())
		}
	}
	for range min(n, rapid.IntRange(0, 30).Draw(t, "changes")) {
		data[rapid.IntRange(0, n-1).Draw(t, "place")] = rapid.Byte().Draw(t, "byte")
	}
	like = rapid.SampledFrom([]string{"", fmt.Sprint(family), "wrong"}).Draw(t, "like")
	return like, data
}

func TestPackHoldsWhatAMapHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pack.New()
		model := map[uint32]*stored{}
		var views []held
		var later []func(require.TestingT) // records that are made then, of a view that is made now
		next := uint32(0)
		tidy := func() {
			p.Tidy(func(owner uint32, to pack.Ref) {
				require.Contains(t, model, owner)
				require.NotEqual(t, model[owner].ref, to)
				model[owner].ref = to
			})
		}
		some := func(t *rapid.T) uint32 {
			var owners []uint32
			for k := range next {
				if model[k] != nil {
					owners = append(owners, k)
				}
			}
			if len(owners) == 0 {
				t.Skip("empty")
			}
			return rapid.SampledFrom(owners).Draw(t, "owner")
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				like, data := texts(t)
				head := rapid.StringN(0, 30, 60).Draw(t, "head")
				model[next] = &stored{head, data, p.Add([]byte(head), next, p.Prepare(like, 0, data))}
				require.NotZero(t, model[next].ref)
				next++
			},
			"update": func(t *rapid.T) {
				owner := some(t)
				m := model[owner]
				like, data := texts(t)
				d := p.Prepare(like, m.ref, data)
				old := m.ref
				if rapid.Bool().Draw(t, "drop first") {
					p.Drop(old)
					m.ref = p.Add([]byte(m.head), owner, d)
				} else {
					m.ref = p.Add([]byte(m.head), owner, d)
					p.Drop(old)
				}
				m.data = data
			},
			"prepare in vain": func(t *rapid.T) {
				like, data := texts(t)
				p.Prepare(like, 0, data)
				if len(model) > 0 && rapid.Bool().Draw(t, "drop") {
					owner := some(t)
					p.Drop(model[owner].ref)
					delete(model, owner)
				}
			},
			"drop": func(t *rapid.T) {
				owner := some(t)
				p.Drop(model[owner].ref)
				delete(model, owner)
			},
			"drop most": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "now") > 0 {
					t.Skip("rarely")
				}
				for owner, m := range model {
					if owner%5 > 0 {
						p.Drop(m.ref)
						delete(model, owner)
					}
				}
			},
			"tidy": func(*rapid.T) { tidy() },
			"save and read": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "now") > 0 {
					t.Skip("rarely")
				}
				p = reread(t, p.Snapshot())
				for owner, ref := range p.All() {
					require.Contains(t, model, owner)
					require.Equal(t, model[owner].ref, ref)
				}
			},
			"hold": func(t *rapid.T) {
				m := model[some(t)]
				views = append(views, held{*m, p.Record(m.ref)})
			},
			"hold view": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "now") > 0 {
					t.Skip("rarely")
				}
				view := p.View()
				for _, m := range model {
					m := *m
					later = append(later, func(t require.TestingT) { held{m, view.Record(m.ref)}.check(t) })
				}
			},
			"": func(t *rapid.T) {
				if len(model) > 0 {
					m := model[some(t)]
					held{*m, p.Record(m.ref)}.check(t)
				}
			},
		})
		for _, m := range model {
			held{*m, p.Record(m.ref)}.check(t)
			require.Equal(t, m.head, string(p.Head(m.ref)))
		}
		for _, v := range views {
			v.check(t)
		}
		for _, check := range later {
			check(t)
		}
		for _, m := range model {
			p.Drop(m.ref)
		}
		like, data := texts(t)
		p.Drop(p.Add(nil, 0, p.Prepare(like, 0, data))) // ends a Prepare in vain
		require.Less(t, p.SizeBytes(), int64(1000), "an empty pack")
	})
}
