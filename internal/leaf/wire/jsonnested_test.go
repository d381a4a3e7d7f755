package wire

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// What compact passes and token passes is the same: nested with compact stops where it does
// without, for the same reason, whatever the text and wherever the buffer ends.
func TestCompactIsAsStrictAsToken(t *testing.T) {
	const seed, texts = 7, 20000
	r := rand.New(rand.NewPCG(seed, 0))
	tokens := func(s *jsonScan) (ok bool) {
		s.open, s.outers = noBrackets, 0
		p, ok := s.token(beforeValue)
		for ok && (s.open != noBrackets || s.outers > 0) {
			if s.open == noBrackets {
				s.outers--
				s.open = s.outer[s.outers]
			}
			p, ok = s.token(p)
		}
		return ok
	}
	type end struct {
		ok, wrecked   bool
		at            int64
		depth         int
		fault         error
		detail        string
		faultAt       int64
		stop          error
		open, dropped bool
	}
	for range texts {
		text := randomText(r)
		size, limit, depth := 64<<r.IntN(6), 100<<r.IntN(12), []int{0, r.IntN(70), maxDepth - r.IntN(200)}[r.IntN(3)]
		run := func(pass func(*jsonScan) bool) end {
			s := &jsonScan{}
			s.restart(iotest.DataErrReader(strings.NewReader(text)), Options{BufferBytes: size, MaxItemBytes: limit})
			s.depth = depth
			s.begin(true)
			require.True(t, s.need(1))
			ok := pass(s)
			return end{ok, s.wrecked, s.at(), s.depth, s.fault, s.faultDetail, s.faultAt, s.stop, s.open != noBrackets, s.dropped}
		}
		require.Equal(t, run(tokens), run((*jsonScan).nested), "%q in a buffer of %d", text, size)
	}
}

// randomText is an object or array and something behind it. Every other one is broken somewhere.
func randomText(r *rand.Rand) string {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	var b strings.Builder
	space := func() {
		if r.IntN(30) == 0 {
			b.WriteString(pick(" ", "\n  ", "\t", "\r\n"))
		}
	}
	text := func() {
		b.WriteByte('"')
		b.WriteString(strings.Repeat("x", r.IntN(2)*r.IntN(2)*r.IntN(400)))
		for range r.IntN(8 << r.IntN(5)) {
			b.WriteString(pick("a", "b", "c", "d", "e", "#", "!", "\xa2", "\x01", "{", "]", ",", `\"`, `\\`, `\\\"`, "xyz"))
		}
		b.WriteByte('"')
	}
	var value func(kind, depth int)
	value = func(kind, depth int) {
		switch {
		case kind == 0:
			text()
		case kind == 1 || depth == 0:
			b.WriteString(pick("true", "false", "null", "0", "1", "-7", "8080", "1234567", "12345678", "1.5", "1e9", "truth", "nul", "01", "1."))
		default:
			object := kind%2 == 0
			b.WriteByte("[{"[kind%2^1])
			for i := range r.IntN(5) {
				if i > 0 {
					b.WriteByte(',')
				}
				if space(); object {
					text()
					space()
					b.WriteByte(':')
					space()
				}
				value(r.IntN(6), depth-1)
				space()
			}
			b.WriteByte("]}"[kind%2^1])
		}
	}
	deep := r.IntN(3) / 2 * r.IntN(150)
	b.WriteString(strings.Repeat(`[`, deep))
	value(2+r.IntN(2), r.IntN(9))
	b.WriteString(strings.Repeat(`]`, deep))
	b.WriteString(pick("", ",", `,"a":1}`, strings.Repeat(" ", 100)))
	wrong := []byte(b.String())
	if len(wrong) > 1 && r.IntN(2) == 0 {
		wrong[1+r.IntN(len(wrong)-1)] = pick("{", "}", "[", "]", `"`, ",", ":", " ", "\\", "t", "0", "-", ".", "#", "\x00")[0]
	}
	return string(wrong)
}
