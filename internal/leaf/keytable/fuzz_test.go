package keytable_test

import (
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

var uuidPattern = regexp.MustCompile(`\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\z`)

// FuzzVersion turns any version to binary and back. A number is what strconv would write, and a
// UUID what it looks like.
func FuzzVersion(f *testing.F) {
	for _, rv := range []string{"", "0", "1", "007", "+5", "-1", "18446744073709551615", "18446744073709551616", "99999999999999999999", "184467440737095516150", "1e3", "opaque", "１"} {
		for _, uid := range []string{"", "6f1c2a9e-0b5d-4c3e-8f77-0123456789ab", "6F1C2A9E-0b5d-4c3e-8f77-0123456789ab", "6f1c2a9e-0b5d-4c3e-8f77-0123456789a", "6f1c2a9e00b5d-4c3e-8f77-0123456789ab", "6f1c2a9e-0b5d-4c3e-8f77-0123456789a/", "6f1c2a9e-0b5d-4c3e-8f77-0123456789\xe1b", "u"} {
			f.Add(rv, uid)
		}
	}
	f.Fuzz(func(t *testing.T, rv, uid string) {
		want := keytable.Version{ResourceVersion: rv, UID: types.UID(uid)}
		b := want.Binary()
		require.Equal(t, want, b.Version())
		number, err := strconv.ParseUint(rv, 10, 64)
		isNumber := err == nil && strconv.FormatUint(number, 10) == rv
		require.Equal(t, isNumber, b.IsNumber)
		if isNumber {
			require.Equal(t, number, b.Number)
		}
		require.Equal(t, uuidPattern.MatchString(uid), b.IsUUID)
	})
}

// FuzzTable holds a table, and one whose hashes collide, against a map. Each line is a key and its
// version, or a key that is deleted.
func FuzzTable(f *testing.F) {
	const uuid = "6f1c2a9e-0b5d-4c3e-8f77-0123456789ab"
	f.Add("default/web-7d9f-x2x4z\t17\t" + uuid + "\ndefault/web-7d9f-2xk4z\t18\ndefault/web-7d9f-x2x4z\tx\ndefault/web-7d9f-2xk4z")
	f.Add("a\t1\t\na\t\ta\na\tb\tb\na\na\t1\n\n\t\n\t1")
	f.Add("a-b-c\t1\na-b-d\t2\na-b-\t3\na-b\t4\na-\t5\n-\t6\n/\t7\n//\t8\na/\t9\n/a\t10\na/b/c-bcdfg\t11\na/b/c-bcdfG\t12\na/b/c-bcdfa\t13")
	f.Add(strings.Repeat("k", 254) + "-\t1\n" + strings.Repeat("k", 255) + "\t2\n" + strings.Repeat("k", 256) + "\t" + strings.Repeat("v", 300) + "\t" + strings.Repeat("u", 300) + "\n" + strings.Repeat("k", 255))
	f.Add("é-\xff\t\x00\t\xc3\né-\xfe\t1\né-\xff")
	var many strings.Builder
	for i := range 200 {
		many.WriteString("ns/pod-" + strconv.Itoa(i*7919%200) + "-bcdfg\t" + strconv.Itoa(i) + "\n")
	}
	f.Add(many.String())
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 1<<13 {
			return
		}
		want := map[string]keytable.Version{}
		tables := []*keytable.Table{keytable.New(), keytable.NewColliding(1)}
		for line := range strings.SplitSeq(script, "\n") {
			key, version, isSet := strings.Cut(line, "\t")
			rv, uid, _ := strings.Cut(version, "\t")
			v := keytable.Version{ResourceVersion: rv, UID: types.UID(uid)}
			_, exists := want[key]
			for _, table := range tables {
				if isSet {
					table.Set(key, v, 0)
					got, ok := table.Get(key)
					require.True(t, ok, "%q", key)
					require.Equal(t, v, got, "%q", key)
				} else {
					require.Equal(t, exists, table.Delete(key), "%q", key)
				}
			}
			if isSet {
				want[key] = v
			} else {
				delete(want, key)
			}
		}
		for _, table := range tables {
			table.Verify()
			require.Equal(t, len(want), table.Len())
			require.Equal(t, want, maps.Collect(table.All()))
			require.Less(t, table.SizeBytes(), int64(64<<10+100*len(script)))
		}
	})
}
