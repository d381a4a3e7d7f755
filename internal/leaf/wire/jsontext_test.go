package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

func TestJSONTextPassesOneValue(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 100) + strings.Repeat(`]}`, 100)
	for _, value := range []string{
		`""`, `"a"`, `"\""`, `"\\"`, `"` + strings.Repeat("x", 100) + `\\\""`,
		"0", "-1.5e+3", "true", "false", "null", "{}", "[]", `{"a":{"b":[1,"]",{}]}}`, `[ 1 , { "a" : null } ]`, deep,
	} {
		require.True(t, json.Valid([]byte(value)), value)
		var text wire.JSONText
		text.Reset([]byte("," + value + `,"next"`))
		end := text.Skip(1)
		require.NoError(t, text.Err(), value)
		require.Equal(t, 1+len(value), end, value)
		end = text.Skip(end + 1)
		require.NoError(t, text.Err(), "the value after %s", value)
		require.Equal(t, 1+len(value)+len(`,"next"`), end, value)
	}
}

func TestJSONTextFindsFaults(t *testing.T) {
	for value, want := range map[string]int{
		``: 0, `"`: 1, `"a\"`: 4, `{`: 1, `[1`: 2, `1`: 1, `tru`: 3,
		`}`: 0, `x`: 0, `{]`: 1, `[1 2]`: 3, `{"a" 1}`: 5, `{1:2}`: 1, `[01]`: 2, `nulx`: 3, `[,]`: 1, `{"a":1,}`: 7,
		strings.Repeat("[", 10001): 10000,
	} {
		var text wire.JSONText
		text.Reset([]byte(value))
		require.Equal(t, len(value), text.Skip(0), value)
		var fault *wire.MalformedError
		require.ErrorAs(t, text.Err(), &fault, value)
		require.Equal(t, want, fault.Offset, "%s: %s", value, fault.Detail)
		require.Equal(t, want == len(value), strings.HasPrefix(fault.Detail, "cut: "), "%s: %s", value, fault.Detail)
	}
}

// A text that was read before, whether it was sound or not, changes nothing.
func TestJSONTextIsResetByAnother(t *testing.T) {
	var text wire.JSONText
	for range 3 {
		text.Reset([]byte(`[[[`))
		text.Skip(0)
		require.Error(t, text.Err())
		text.Reset([]byte(`{"a":{}`))
		require.Equal(t, 7, text.Skip(5))
		require.NoError(t, text.Err())
	}
}

func TestJSONTextGoesIntoObjects(t *testing.T) {
	for text, want := range map[string]string{
		` { "a" : "1" , "\u0062\"" :"\n","é":[ 2 ],"c":"\u00e9"} `: `a=1 b"=` + "\n" + ` é= c=é`,
		`{}`:              "",
		` { } `:           "",
		`{a`:              "malformed object at byte 1: a key expected",
		`{"a":1,`:         "malformed object at byte 7: cut: a key expected",
		`{"\x":1}`:        "malformed object at byte 1: an invalid key",
		"{\"a\n\":1}":     "malformed object at byte 1: an invalid key",
		`{"a"}`:           "malformed object at byte 4: ':' expected",
		`{"a"`:            "malformed object at byte 4: cut: ':' expected",
		`{"a":`:           "malformed object at byte 5: cut: a value expected",
		`{"a":"\x"}`:      "malformed object at byte 5: an invalid string",
		`{"a":{} "b":{}}`: "malformed object at byte 8: ',' or '}' expected",
		`{"a":1]`:         "malformed object at byte 6: ',' or '}' expected",
		`{"a":true`:       "malformed object at byte 9: cut: ',' or '}' expected",
	} {
		var walk wire.JSONText
		walk.Reset([]byte(text))
		var members []string
		at, more := walk.Enter(walk.Space(0), '}')
		for more {
			key, value := walk.Key(at)
			meaning, end := walk.String(value)
			members = append(members, string(key)+"="+string(meaning))
			at, more = walk.Next(end, '}')
		}
		if err := walk.Err(); err != nil {
			require.Equal(t, len(text), at, text)
			require.EqualError(t, err, want, text)
			continue
		}
		require.Equal(t, len(text), walk.Space(at), text)
		require.Equal(t, want, strings.Join(members, " "), text)
	}
}
