package known_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

func TestLatestAreNewestFirst(t *testing.T) {
	var v known.Versions
	for n := range 3000 {
		number := (n*7919)%3000 + 1
		v.Set(fmt.Sprintf("a/%d", number), keytable.Version{ResourceVersion: fmt.Sprint(number), UID: "no UUID"}, 0)
	}
	v.Set("a/opaque", keytable.Version{ResourceVersion: "opaque"}, 0)
	latest := v.Latest(func(key string) bool { return key == "a/2999" })
	require.Len(t, latest, 15)
	expected := 3000
	for _, o := range latest {
		require.Equal(t, fmt.Sprintf("a/%d", expected), o.Key)
		require.Equal(t, keytable.Version{ResourceVersion: fmt.Sprint(expected), UID: "no UUID"}, o.Version)
		if expected--; expected == 2999 {
			expected--
		}
	}
}
