package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/api"
)

// One of each type, in both formats.
func TestWatchEvents(t *testing.T) {
	bodies := map[Format][]byte{JSON: []byte(jsonWatchSeeds[0]), Protobuf: protoWatchSeeds(t)[0]}
	for format, body := range bodies {
		w := NewWatchReader(bytes.NewReader(body), format, Options{})
		types := map[watch.EventType]int{}
		for {
			event, err := w.Next()
			if err == io.EOF {
				break
			}
			if recoverable(err) {
				require.ErrorIs(t, err, ErrNoName)
				continue
			}
			require.NoError(t, err)
			types[event.Type]++
			require.True(t, bytes.HasPrefix(body[event.Offset:], event.Bytes))
			switch event.Type {
			case watch.Bookmark:
				require.True(t, event.InitialEventsEnd)
				require.Equal(t, "9", string(event.ResourceVersion))
			case watch.Error:
				status, err := event.Status()
				require.NoError(t, err)
				require.Equal(t, metav1.StatusReasonExpired, status.Reason)
				require.EqualValues(t, 410, status.Code)
				require.Equal(t, "Status", string(event.Kind))
			default:
				require.NotEmpty(t, event.Name)
				require.Equal(t, "Pod", string(event.Kind))
			}
		}
		require.Equal(t, 1, types[watch.Bookmark])
		require.Equal(t, 1, types[watch.Error])
	}
}

func TestWrongWatchBodies(t *testing.T) {
	event := `{"type":"ADDED","object":` + good + `}`
	frame := string(protoWatchSeeds(t)[0])
	for _, c := range []struct {
		format Format
		body   string
		want   error
	}{
		{JSON, "", io.EOF},
		{JSON, "\n \n", io.EOF},
		{JSON, "null", api.ErrNotWatch},
		{JSON, "[" + event + "]", api.ErrNotWatch},
		{JSON, "<html>", api.ErrNotWatch},
		{JSON, `{"kind":"Status","status":"Failure"}`, ErrStatus},
		{JSON, event + "<html>", api.ErrMalformed},
		{JSON, event + event[:40], io.ErrUnexpectedEOF},
		{Protobuf, "", io.EOF},
		{Protobuf, "<html>", api.ErrNotWatch},
		{Protobuf, event, api.ErrNotWatch},
		{Protobuf, "k8s\x00abc", api.ErrNotWatch},
		{Protobuf, frame[:3], io.ErrUnexpectedEOF},
		{Protobuf, frame[:30], io.ErrUnexpectedEOF},
		{Protobuf, frame + "<html>", api.ErrEndless},
	} {
		_, err := readAll(t, openWatch(c.format)(strings.NewReader(c.body), Options{}))
		require.ErrorIs(t, err, c.want, c.body)
	}
}

func TestLostWatchEvents(t *testing.T) {
	const next = `{"type":"ADDED","object":` + good + `}`
	for event, want := range map[string]error{
		`{"type":"ADDED","object":{}}`:                        ErrNoName,
		`{"type":"ADDED","object":null}`:                      api.ErrMalformed,
		`{"type":"ADDED"}`:                                    api.ErrMalformed,
		`{"type":"ADDED","object":[]}`:                        api.ErrMalformed,
		`{"type":"added","object":` + good + `}`:              api.ErrMalformed,
		`{"type":7,"object":` + good + `}`:                    api.ErrMalformed,
		`{"object":` + good + `}`:                             api.ErrMalformed,
		`{"type":"ADDED","object":{"metadata":{"name":"a"}]}`: api.ErrMalformed,
		`{"type":"ADDED","object":{"metadata":{"name":"a","x":"` + strings.Repeat("x", 3000) + `"}}}`: api.ErrTooLarge,
	} {
		all, err := readAll(t, openWatch(JSON)(strings.NewReader(next+event+"\n"+next), Options{MaxItemBytes: 2000, BufferBytes: 64}))
		require.Equal(t, io.EOF, err, event)
		require.Len(t, all, 3, event)
		require.ErrorIs(t, all[1].err, want, event)
		require.Equal(t, good, all[2].Bytes)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n"}}
	fine := protoFrame(t, "ADDED", encoded(t, protoCodec, pod))
	big := pod.DeepCopy()
	big.Spec.NodeName = strings.Repeat("x", 30000)
	for name, c := range map[string]struct {
		frame []byte
		want  error
	}{
		"no name":   {protoFrame(t, "ADDED", encoded(t, protoCodec, &corev1.Pod{})), ErrNoName},
		"no prefix": {protoFrame(t, "ADDED", []byte("xxxxxxxx")), api.ErrMalformed},
		"no type":   {protoFrame(t, "", encoded(t, protoCodec, pod)), api.ErrMalformed},
		"empty":     {make([]byte, 4), api.ErrMalformed},
		"garbage":   {append(binary.BigEndian.AppendUint32(nil, 3), 0xff, 0xff, 0xff), api.ErrMalformed},
		"too large": {protoFrame(t, "ADDED", encoded(t, protoCodec, big)), api.ErrTooLarge},
	} {
		body := bytes.Join([][]byte{fine, c.frame, fine}, nil)
		all, err := readAll(t, openWatch(Protobuf)(bytes.NewReader(body), Options{MaxItemBytes: 20000, BufferBytes: 64}))
		require.Equal(t, io.EOF, err, name)
		require.Len(t, all, 3, name)
		require.ErrorIs(t, all[1].err, c.want, name)
		require.Equal(t, all[0].Bytes, all[2].Bytes)
		if c.want == api.ErrTooLarge {
			var fault *ItemError
			require.ErrorAs(t, all[1].err, &fault)
			require.Equal(t, "n/a", fault.Namespace+"/"+fault.Name)
			require.EqualValues(t, len(c.frame)-4, fault.Size)
		}
	}
}

// A watch holds little once a bookmark has said that nothing else is to be told, however much came
// before.
func TestWatchRestsAfterBookmark(t *testing.T) {
	large := `{"metadata":{"name":"large"},"a":"` + strings.Repeat("x", 3000) + `"}`
	bookmark := `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9"}}`
	var text, frames bytes.Buffer
	for range 200 {
		text.WriteString(`{"type":"ADDED","object":` + large + "}\n")
		frames.Write(protoFrame(t, "ADDED", encoded(t, protoCodec, &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "large", Annotations: map[string]string{"a": strings.Repeat("x", 3000)}},
		})))
	}
	text.WriteString(`{"type":"BOOKMARK","object":` + bookmark + "}\n")
	frames.Write(protoFrame(t, "BOOKMARK", encoded(t, protoCodec, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}})))
	for format, body := range map[Format]*bytes.Buffer{JSON: &text, Protobuf: &frames} {
		reads := &roomReader{Reader: body}
		w := NewWatchReader(reads, format, Options{BufferBytes: 128})
		for {
			event, err := w.Next()
			require.NoError(t, err, format)
			if event.Type == watch.Bookmark {
				break
			}
		}
		require.Greater(t, reads.room, defaultBufferBytes/2, format)
		w.Wait()
		require.Less(t, reads.room, 1<<10, "%v: the buffer that waits", format)
		_, err := w.Next()
		require.Equal(t, io.EOF, err, format)
	}
}

// A watch that brings an event now and then waits with its small buffer in between, and reads the
// event in two steps.
func TestWatchBorrowsBufferForAnEvent(t *testing.T) {
	const events, perEvent = 200, 2
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "large", Annotations: map[string]string{"a": strings.Repeat("x", 5000)}}}
	for format, event := range map[Format][]byte{
		JSON:     []byte(`{"type":"ADDED","object":` + string(encoded(t, jsonCodec, pod)) + "}\n"),
		Protobuf: protoFrame(t, "ADDED", encoded(t, protoCodec, pod)),
	} {
		source := &bursts{burst: event, more: events}
		w := NewWatchReader(source, format, Options{BufferBytes: 128})
		for range events {
			w.Wait()
			require.Equal(t, 128, source.firstRoom, "%v: the buffer that waits", format)
			_, err := w.Next()
			require.NoError(t, err, format)
		}
		require.Equal(t, perEvent*events, source.reads, format)
	}
}

// bursts brings the same bytes again and again, and never more of them than the rest of one burst.
// It counts the reads, and notes with which room a burst was awaited.
type bursts struct {
	burst            []byte
	left             []byte
	more             int
	reads, firstRoom int
}

func (b *bursts) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		if b.more == 0 {
			return 0, io.EOF
		}
		b.left, b.firstRoom = b.burst, len(p)
		b.more--
	}
	b.reads++
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// roomReader notes how much was to be read last.
type roomReader struct {
	io.Reader
	room int
}

func (r *roomReader) Read(p []byte) (int, error) {
	r.room = len(p)
	return r.Reader.Read(p)
}
