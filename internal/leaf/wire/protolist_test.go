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

	"github.com/rvinformer/informer/api"
)

func TestWrongProtoListBodies(t *testing.T) {
	seeds := protoListSeeds(t)
	for _, c := range []struct {
		body []byte
		want error
	}{
		{nil, ErrEmptyBody},
		{[]byte("k8"), io.ErrUnexpectedEOF},
		{[]byte("k8s\x00"), io.ErrUnexpectedEOF},
		{[]byte("<h"), api.ErrNotList},
		{[]byte("<!DOCTYPE html>"), api.ErrNotList},
		{[]byte(`{"kind":"Status"}`), api.ErrNotList},
		{encoded(t, protoCodec, &metav1.Status{}), ErrStatus},
		{encoded(t, protoCodec, &corev1.Pod{}), api.ErrNotList},
		{encoded(t, protoCodec, &corev1.List{}), api.ErrNotList},
		{envelope(t, "", []byte("\x0a\x00")), api.ErrNotList},
		{envelope(t, "PodList", []byte("\x12\x05\x0a\x03\x0a\x01a\x12\x7f")), api.ErrMalformed}, // an item over the list's end
		{envelope(t, "PodList", []byte("\x10\x05")), api.ErrMalformed},                          // items as a varint
		{envelope(t, "PodList", []byte("\x0a\x02\x12\x05")), api.ErrMalformed},                  // list metadata cut short
		{append(bytes.Clone(seeds[0]), envelope(t, "PodList", []byte("\x12\x00"))[4:]...), api.ErrMalformed},
	} {
		_, err := readAll(t, openList(Protobuf)(bytes.NewReader(c.body), Options{}))
		require.ErrorIs(t, err, c.want, "%q", c.body)
	}
}

// After an item that is lost, the next one is read all the same.
func TestLostProtoItems(t *testing.T) {
	item := func(message string) string {
		return string(binary.AppendUvarint([]byte{0x12}, uint64(len(message)))) + message
	}
	const fine = "\x0a\x03\x0a\x01b"
	for message, want := range map[string]error{
		"":                      ErrNoName,
		"\x0a\x00":              ErrNoName,
		"\x0a\x05\x0a\x01":      api.ErrMalformed,
		"\x0a\x02\x08\x01":      api.ErrMalformed, // the name a varint
		"\x08\x01":              api.ErrMalformed, // the metadata a varint
		"\x0a\x03\x0a\x01a\xff": api.ErrMalformed,
		"\x0a\x03\x0a\x01a\x12\x80\xfa\x01" + strings.Repeat("x", 32000): api.ErrTooLarge,
	} {
		body := envelope(t, "PodList", []byte(item(fine)+item(message)+item(fine)))
		all, err := readAll(t, openList(Protobuf)(bytes.NewReader(body), Options{MaxItemBytes: 20000, BufferBytes: 64}))
		require.Equal(t, io.EOF, err)
		require.Len(t, all, 3)
		var fault *ItemError
		require.ErrorAs(t, all[1].err, &fault)
		require.ErrorIs(t, fault, want)
		require.Equal(t, 1, fault.Index)
		require.EqualValues(t, len(message), fault.Size)
		require.True(t, bytes.HasPrefix(body[fault.Offset:], []byte(message)))
		require.Equal(t, "b", all[2].Name)
		if want == api.ErrTooLarge {
			require.Equal(t, "a", fault.Name)
		}
	}
}

func TestEndlessProto(t *testing.T) {
	const limit = 1 << 16
	raw := "k8s\x00\x12\xff\xff\xff\xff\xff\xff\x7f" // a list of 4 PB
	for name, c := range map[string]struct {
		endless
		want error
	}{
		"envelope of fields": {endless{"k8s\x00", "\x28\x01", 0}, api.ErrTooLarge},
		"envelope of groups": {endless{"k8s\x00", "\x2b", 0}, api.ErrTooLarge},
		"list of fields":     {endless{raw, "\x28\x01", 0}, api.ErrTooLarge},
		"list of metadata":   {endless{raw, "\x0a\x00", 0}, api.ErrTooLarge},
		"large metadata":     {endless{raw + "\x0a\xff\xff\xff\x7f", "x", 0}, api.ErrTooLarge},
		"large unknown":      {endless{raw + "\x1a\xff\xff\xff\x7f", "x", 0}, api.ErrTooLarge},
		"large item":         {endless{raw + "\x12\xff\xff\xff\x7f", "x", 0}, api.ErrEndless},
	} {
		l := newProtoList(&c.endless, Options{MaxItemBytes: limit}.withDefaults())
		_, err := readAll(t, l)
		require.ErrorIs(t, err, c.want, name)
		require.LessOrEqual(t, len(l.buf), 8*limit, name)
		require.LessOrEqual(t, c.read, int64(20*limit), name)
	}
}
