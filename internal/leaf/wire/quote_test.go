package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/api"
)

// failWith reads body to its end as a list and as a watch, in both formats, and returns the errors
// that ended them.
func failWith(body string) (errs []error) {
	for _, format := range []Format{JSON, Protobuf} {
		l, w := NewListReader(strings.NewReader(body), format, Options{}), NewWatchReader(strings.NewReader(body), format, Options{})
		for _, next := range []func() error{
			func() error { _, err := l.Next(); return err },
			func() error { _, err := w.Next(); return err },
		} {
			err := next()
			for err == nil || recoverable(err) {
				err = next()
			}
			errs = append(errs, err)
		}
	}
	return errs
}

// An answer that may hold objects is not quoted, however it goes wrong.
func TestErrorsShowNothingOfObjects(t *testing.T) {
	const data = `"data":{"key":"hunter2"}`
	secret := `{"metadata":{"name":"a"},` + data + `}`
	for _, body := range []string{
		`{"kind":"SecretList","apiVersion":"v1","items":[` + secret + `,`,
		`{"kind":"SecretList","items":[` + secret[:len(secret)-1] + `]}`,
		`{"items":[` + secret + `],"kind":"Status"}`,
		`{"kind":"Status","items":[` + secret + `]}`,
		`{"kind":"Secret","apiVersion":"v1",` + data + `}`,
		`{` + data + `,"kind":"Secret"}`,
		`{"big":"` + strings.Repeat("x", 300) + `",` + data,
		`{` + data + `}`,
		` {` + data,
		`[` + secret + `]`,
		`"hunter2`,
		`{"type":"ADDED","object":` + secret + `]`,
		`{"object":` + secret + `,"kind":"Status"}`,
		"apiVersion: v1\ndata:\n  key: hunter2\n",
		"k8s\x00hunter2",
		"\x00\x00\x01hunter2",
		"\x1f\x8bhunter2",
	} {
		for _, err := range failWith(body) {
			var fault *api.BodyError
			if err != io.EOF {
				require.ErrorAs(t, err, &fault, body)
				require.NotContains(t, string(fault.Head)+err.Error(), "hunter2", body)
				require.NotContains(t, fmt.Sprintf("%x", fault.Head), fmt.Sprintf("%x", "hunter2"), body)
			}
		}
	}
}

// An answer of something else is quoted, without credentials.
func TestErrorsShowWhatIsNoKubernetesAnswer(t *testing.T) {
	for body, want := range map[string]string{
		"<html>Please log in":                       "<html>Please log in",
		"upstream connect error":                    "upstream connect error",
		`{"message":"no Route matched"}`:            `{"message":"no Route matched"}`,
		`{"message":"no","access_token":"hunter2"}`: `{"message":"no","access_token":"xxxxx"}`,
		`<a href="https://me:hunter2@host/">`:       `<a href="https://xxxxx@host/">`,
	} {
		quoted := 0
		for _, err := range failWith(body) {
			var fault *api.BodyError
			if errors.As(err, &fault) && fault.Head != nil {
				require.Equal(t, want, string(fault.Head))
				require.Contains(t, err.Error(), fmt.Sprintf("it begins %q", want))
				quoted++
			}
		}
		require.NotZero(t, quoted, body)
	}
	for _, err := range failWith(`{"kind":"Status","code":500,"message":"no"}`)[:1] {
		require.ErrorContains(t, err, "it begins")
	}
}
