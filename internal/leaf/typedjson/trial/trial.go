// Package trial tries package typedjson beside apimachinery's decoder, for tests.
package trial

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/leaf/typedjson"
)

// RequireSame decodes texts into one value of a type after the other, as apimachinery does and with
// typedjson, and compares the results. It reports whether all texts were decoded.
func RequireSame(t require.TestingT, of reflect.Type, texts ...[]byte) bool {
	want, got := reflect.New(of).Interface(), reflect.New(of).Interface()
	for _, text := range texts {
		wantErr := utiljson.Unmarshal(text, want)
		given := slices.Clone(text)
		err := typedjson.Decode(given, got)
		clear(given) // no value may be of the text
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error(), "%v of %q", of, text)
			return false
		}
		require.NoError(t, err, "%v of %q", of, text)
		if !reflect.DeepEqual(want, got) {
			require.Equal(t, want, got, "%v of %q", of, text)
			require.Fail(t, "not equal", "%v of %q", of, text)
		}
	}
	return true
}

// Types tries each type with texts of filled objects: as they are, and changed at random.
func Types(t require.TestingT, types []reflect.Type, fill func(obj any), seed int64, rounds int) {
	decoded, refused := 0, 0
	for i, of := range types {
		r := rand.New(rand.NewSource(seed + int64(i)))
		for round := range rounds {
			obj := reflect.New(of).Interface()
			fill(obj)
			text, err := json.Marshal(obj)
			require.NoError(t, err, "%v", of)
			RequireSame(t, of, text)
			if RequireSame(t, of, Mutated(r, text, []int{10, 50, 200}[round%3])) {
				decoded++
			} else {
				refused++
			}
		}
	}
	require.Greater(t, decoded, len(types), "changed texts that are decoded")
	require.Greater(t, refused, len(types)/2, "changed texts that are refused")
}
