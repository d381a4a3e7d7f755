// Package typedjson decodes JSON into Go types. The result, and whether there is an error, is that
// of apimachinery's decoder, sigs.k8s.io/json: names match by case, an unknown member is ignored,
// the last one of equal names counts, and null leaves alone what cannot be nil.
//
// Package github.com/go-json-experiment/json does it, which takes half the time and allocations,
// and shares equal strings of objects that follow each other. Go 1.27 has it as encoding/json/v2.
package typedjson

import (
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// options have the semantics of apimachinery. With legacy errors, each text would be checked to its
// end before it is decoded. An error is apimachinery's in any case.
var options = json.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	json.MatchCaseInsensitiveNames(false),
	jsonv1.ReportErrorsWithLegacySemantics(false),
)

// types has what isAlike has found out of each type.
var types sync.Map

// Decode decodes a text into the empty value that into points to. The error is that of
// apimachinery's decoder. The value keeps no bytes of the text.
func Decode(text []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || !decodesAlike(v.Type().Elem()) {
		return utiljson.Unmarshal(text, into)
	}
	if json.Unmarshal(text, into, options) == nil {
		return nil
	}
	// Apimachinery says what is wrong. It takes few of the texts that were refused: for a field with
	// the option "string" that no other JSON has, or null for a function.
	v.Elem().SetZero()
	return utiljson.Unmarshal(text, into)
}

// decodesAlike is isAlike, remembered.
func decodesAlike(t reflect.Type) bool {
	if known, ok := types.Load(t); ok {
		return known.(bool)
	}
	alike := isAlike(t, map[reflect.Type]bool{})
	types.Store(t, alike)
	return alike
}
