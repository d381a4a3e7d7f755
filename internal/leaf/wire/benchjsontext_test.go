//go:build goexperiment.jsonv2 && unix

package wire

import (
	"encoding/json/jsontext"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// The candidate that was not taken:
//
//	GOEXPERIMENT=jsonv2 go test ./internal/leaf/wire -run '^$' -bench JSONText -benchmem
func BenchmarkJSONText(b *testing.B) {
	body := encoded(b, jsonCodec, generatedList(benchPods))
	run := func(name string, pass func(*jsontext.Decoder) error) {
		b.Run(name, func(b *testing.B) {
			var d *jsontext.Decoder
			benchItems(b, body, benchPods, func() error {
				if d.PeekKind() == ']' {
					return io.EOF
				}
				return pass(d)
			}, func(r io.Reader) {
				d = jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
				for {
					token, err := d.ReadToken()
					require.NoError(b, err)
					if token.Kind() == '[' {
						return
					}
				}
			})
		})
	}
	run("impl=ReadValue", func(d *jsontext.Decoder) error { _, err := d.ReadValue(); return err })
	run("impl=SkipValue", func(d *jsontext.Decoder) error { return d.SkipValue() })
}
