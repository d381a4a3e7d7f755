package wire

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
)

// A body is read in the same way whether its format is declared or recognized.
func TestUndeclaredFormatIsRecognized(t *testing.T) {
	list := generatedList(5)
	for format, bodies := range map[Format]struct{ list, watch []byte }{
		JSON:     {append([]byte(" \n"), encoded(t, jsonCodec, list)...), []byte(jsonWatchSeeds[0])},
		Protobuf: {encoded(t, protoCodec, list), protoWatchSeeds(t)[0]},
	} {
		for body, open := range map[string]func(Format) open{string(bodies.list): openList, string(bodies.watch): openWatch} {
			want, wantErr := readAll(t, open(format)(strings.NewReader(body), Options{}))
			for _, source := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body)), iotest.DataErrReader(strings.NewReader(body))} {
				got, err := readAll(t, open(Undeclared)(source, Options{}))
				require.Equal(t, wantErr, err, format)
				require.Equal(t, want, got, format)
			}
		}
	}
}

// A reader of lists recognizes each of them.
func TestUndeclaredListsAreRecognizedOneByOne(t *testing.T) {
	list := generatedList(3)
	r := NewListReader(strings.NewReader("<html>"), Undeclared, Options{})
	_, err := r.Next()
	require.ErrorIs(t, err, api.ErrContentType)
	require.Zero(t, r.Meta())
	for range 2 {
		for _, body := range [][]byte{encoded(t, jsonCodec, list), encoded(t, protoCodec, list)} {
			r.Reset(bytes.NewReader(body))
			n := 0
			for ; ; n++ {
				if _, err = r.Next(); err != nil {
					break
				}
			}
			require.Equal(t, io.EOF, err)
			require.Equal(t, 3, n)
			require.NotEmpty(t, r.Meta().Kind)
		}
	}
}

func TestUndeclaredBodiesThatAreNeither(t *testing.T) {
	for _, watch := range []bool{false, true} {
		for body, want := range map[string]error{
			"<html>": api.ErrContentType, "k8": api.ErrContentType, "[]": api.ErrContentType, "null": api.ErrContentType, "\x01": api.ErrContentType,
			"": io.EOF, " \n": io.EOF,
		} {
			if body == "k8" && !watch {
				want = io.ErrUnexpectedEOF
			}
			if want == io.EOF && !watch {
				want = ErrEmptyBody
			}
			var next func() error
			if watch {
				r := NewWatchReader(strings.NewReader(body), Undeclared, Options{})
				r.Wait()
				require.Zero(t, r.Unread())
				next = func() error { _, err := r.Next(); return err }
			} else {
				r := NewListReader(strings.NewReader(body), Undeclared, Options{})
				next = func() error { _, err := r.Next(); return err }
			}
			for range 2 {
				err := next()
				require.ErrorIs(t, err, want, "%q, watch %v", body, watch)
				if want == api.ErrContentType {
					var fault *api.BodyError
					require.ErrorAs(t, err, &fault)
					require.Equal(t, watch, fault.Watch)
					require.Contains(t, fault.Error(), "unknown content type")
				}
			}
		}
	}
	broken := NewListReader(iotest.ErrReader(io.ErrClosedPipe), Undeclared, Options{})
	_, err := broken.Next()
	require.ErrorIs(t, err, io.ErrClosedPipe)
}
