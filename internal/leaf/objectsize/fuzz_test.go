package objectsize_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/leaf/objectsize"
)

// FuzzOf compares with the JSON text, its strings unescaped: what Of says is not less but for the
// digits of long numbers, and not more than a comma for each object and array, and what short
// numbers have less than five.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":"b","c":[1,true,null,{"d":[]}]}`, `{"a":123456789012345678901234567890,"b":-1e300}`, `{"":"","\u00e9\n":"\ud800"}`, `{"a":[[[[[[]]]]]]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var object map[string]any
		if len(text) > 1<<13 || utiljson.Unmarshal(text, &object) != nil || object == nil {
			return
		}
		compact, err := json.Marshal(object)
		require.NoError(t, err)
		var size, containers, scalars, escaped, digits int64
		decoder := json.NewDecoder(bytes.NewReader(compact))
		decoder.UseNumber()
		for decoder.More() || containers == 0 || decoder.InputOffset() < int64(len(compact)) {
			from := decoder.InputOffset()
			token, err := decoder.Token()
			require.NoError(t, err)
			switch token := token.(type) {
			case json.Delim:
				containers++ // and once more at its end
			case string:
				written := bytes.TrimLeft(compact[from:decoder.InputOffset()], ",:")
				escaped += int64(len(written) - len(token) - 2)
			case json.Number:
				scalars++
				digits += int64(len(token))
			default:
				scalars++
				digits += 4
			}
		}
		size = int64(len(compact)) - escaped // the strings as they are in memory
		got := objectsize.Of(&unstructured.Unstructured{Object: object})
		require.GreaterOrEqual(t, got, size-digits, "%s", compact)
		require.LessOrEqual(t, got, size-digits+5*scalars+containers/2, "%s", compact)
	})
}
