package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
)

// letters are n times the letter x.
type letters struct{ n int }

func (l *letters) Read(p []byte) (int, error) {
	n := min(len(p), l.n)
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = 'x'
	}
	l.n -= n
	return n, nil
}

// giantBodies are lists and watches whose second item of three has a member of the given size.
func giantBodies(t *testing.T, size int) map[string]func() (next func() error) {
	const named = `{"metadata":{"name":%q}}`
	giant := func(before, after string) io.Reader {
		return io.MultiReader(strings.NewReader(before+`{"metadata":{"name":"b"},"data":"`), &letters{size}, strings.NewReader(`"}`+after))
	}
	field := func(number byte, length int) string {
		return string(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(length)))
	}
	name := func(name string) string {
		return field(1, len(name)+2) + field(1, len(name)) + name // metadata.name
	}
	// What stands before the letters and belongs to the same message.
	message := name("b") + field(15, size)
	items := field(2, len(name("a"))) + name("a") + field(2, len(message)+size) + message
	last := field(2, len(name("c"))) + name("c")
	kind := field(1, 2+2+2+7) + field(1, 2) + "v1" + field(2, 7) + "PodList"
	list := string(protoPrefix[:]) + kind + field(2, len(items)+size+len(last)) + items
	unknown := field(2, len(message)+size) + message
	object := string(protoPrefix[:]) + unknown
	extension := field(1, len(object)+size) + object
	event := field(1, 5) + "ADDED" + field(2, len(extension)+size) + extension
	frame := string(binary.BigEndian.AppendUint32(nil, uint32(len(event)+size))) + event

	listed := func(body io.Reader, format Format) func() error {
		r := NewListReader(body, format, Options{})
		return func() error { _, err := r.Next(); return err }
	}
	watched := func(body io.Reader, format Format) func() error {
		r := NewWatchReader(body, format, Options{BufferBytes: 128})
		return func() error { _, err := r.Next(); return err }
	}
	return map[string]func() func() error{
		"JSON list": func() func() error {
			return listed(giant(`{"kind":"PodList","apiVersion":"v1","items":[`+fmt.Sprintf(named, "a")+`,`, `,`+fmt.Sprintf(named, "c")+`]}`), JSON)
		},
		"JSON watch": func() func() error {
			event := `{"type":"ADDED","object":`
			return watched(giant(event+fmt.Sprintf(named, "a")+`}`+event, `}`+event+fmt.Sprintf(named, "c")+`}`), JSON)
		},
		"protobuf list": func() func() error {
			return listed(io.MultiReader(strings.NewReader(list), &letters{size}, strings.NewReader(last)), Protobuf)
		},
		"protobuf watch": func() func() error {
			return watched(io.MultiReader(strings.NewReader(frame), &letters{size}), Protobuf)
		},
	}
}

// An item that is too large costs little more than the largest that is not, however large it is.
func TestGiantItemCostsNoMoreThanTheLimit(t *testing.T) {
	for _, size := range []int{17 << 20, 96 << 20} {
		for name, open := range giantBodies(t, size) {
			t.Run(fmt.Sprint(name, " ", size>>20), func(t *testing.T) {
				next := open()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				var lost []error
				err := next()
				for ; err == nil || recoverable(err); err = next() {
					if err != nil {
						lost = append(lost, err)
					}
				}
				runtime.ReadMemStats(&after)
				require.Equal(t, io.EOF, err)
				require.Len(t, lost, 1)
				require.ErrorIs(t, lost[0], api.ErrTooLarge)
				require.ErrorContains(t, lost[0], "/b")
				allocated := int64(after.TotalAlloc - before.TotalAlloc)
				require.Less(t, allocated, int64(defaultMaxItemBytes+2*doublingBytes+1<<20), "%d MiB", allocated>>20)
			})
		}
	}
}

// The largest item that is handed over is, and one byte more is too large.
func TestLargestItem(t *testing.T) {
	frame := len(`{"type":"ADDED","object":{"metadata":{"name":"b"},"data":""}}`)
	for over, want := range map[int]error{0: nil, 1: api.ErrTooLarge} {
		size := defaultMaxItemBytes - frame + over
		next := giantBodies(t, size)["JSON watch"]()
		require.NoError(t, next())
		require.ErrorIs(t, next(), want)
		require.NoError(t, next())
		require.Equal(t, io.EOF, next())
	}
}
