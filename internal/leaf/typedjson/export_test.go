package typedjson

import (
	"reflect"

	"github.com/go-json-experiment/json"
)

// DecodesAlike reports whether a type is not left to apimachinery's decoder.
func DecodesAlike(t reflect.Type) bool { return decodesAlike(t) }

// Refused returns why apimachinery's decoder is asked about a text, nil if it is not.
func Refused(text []byte, into any) error { return json.Unmarshal(text, into, options) }
