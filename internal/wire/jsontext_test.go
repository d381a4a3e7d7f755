package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/wire"
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
		end, fault := text.Skip(1)
		require.Empty(t, fault, value)
		require.Equal(t, 1+len(value), end, value)
		end, fault = text.Skip(end + 1)
		require.Empty(t, fault, "the value after %s", value)
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
		at, fault := text.Skip(0)
		require.NotEmpty(t, fault, value)
		require.Equal(t, want, at, "%s: %s", value, fault)
	}
}

// A text that was read before, whether it was sound or not, changes nothing.
func TestJSONTextIsResetByAnother(t *testing.T) {
	var text wire.JSONText
	for range 3 {
		text.Reset([]byte(`[[[`))
		_, fault := text.Skip(0)
		require.NotEmpty(t, fault)
		text.Reset([]byte(`{"a":{}`))
		end, fault := text.Skip(5)
		require.Empty(t, fault)
		require.Equal(t, 7, end)
	}
}
