package known_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// uidOutside is a UID of an object that is not in a shard by UID.
func uidOutside(s api.Shard) types.UID {
	for n := 0; ; n++ {
		if uid := fmt.Sprint("uid-", n); !s.Includes("", uid) {
			return types.UID(uid)
		}
	}
}

// TestConfine follows a shard with versions that a program has filled, or an informer of another
// shard.
func TestConfine(t *testing.T) {
	lower, upper := api.Shard{Key: api.ShardByUID, End: 1 << 63}, api.Shard{Key: api.ShardByUID, Start: 1 << 63}
	quarter := api.Shard{Key: api.ShardByUID, End: 1 << 62}
	named := api.Shard{Key: api.ShardByNamespace, End: 1 << 63}
	in, out := uidOutside(upper), uidOutside(lower)
	home, abroad := "", ""
	for n := 0; home == "" || abroad == ""; n++ {
		if name := fmt.Sprint("n", n); named.Includes(name, "") {
			home = name + "/a"
		} else {
			abroad = name + "/a"
		}
	}
	for name, test := range map[string]struct {
		before []api.Shard
		to     api.Shard
		// known are the keys that stay, and begun those that the handler may have begun with:
		// nothing else is known of them.
		known, begun []string
		// edit: something of the shard may have been forgotten.
		edit bool
	}{
		"all":            {nil, api.Shard{}, []string{"in", "out", "nameless", home, abroad}, []string{"begun", home + "b", abroad + "b"}, false},
		"filled":         {nil, lower, []string{"in", "nameless", home, abroad}, []string{"begun", home + "b", abroad + "b"}, false},
		"the same":       {[]api.Shard{lower}, lower, []string{"in", "nameless", home, abroad}, []string{"begun", home + "b", abroad + "b"}, false},
		"a part before":  {[]api.Shard{quarter}, lower, []string{"in", "nameless", home, abroad}, []string{"begun", home + "b", abroad + "b"}, true},
		"all before":     {[]api.Shard{{}}, lower, []string{"in", home, abroad}, nil, false},
		"another before": {[]api.Shard{upper}, lower, []string{"in", home, abroad}, nil, true},
		"another before, with the hash of no UID": {[]api.Shard{lower}, upper, []string{"out", "nameless"}, nil, true},
		"by namespace":             {nil, named, []string{home}, []string{home + "b"}, false},
		"by namespace, all before": {[]api.Shard{{}}, named, []string{home}, []string{home + "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var v known.Versions
			for _, s := range test.before { // an informer that has followed it, without having read anything
				v.Confine(s)
			}
			set := func(key string, uid types.UID) { v.Set(key, keytable.Version{ResourceVersion: "1", UID: uid}, 0) }
			set("in", in)
			set("out", out)
			set("nameless", "")
			set(home, in)
			set(abroad, in)
			for _, key := range []string{"begun", home + "b", abroad + "b"} {
				v.Settle(key, false)
			}
			v.Settle("out", false)
			edits := v.Edits()
			v.Confine(test.to)
			keys := []string{}
			for key := range v.All() {
				keys = append(keys, key)
			}
			require.ElementsMatch(t, test.known, keys)
			require.ElementsMatch(t, test.begun, v.UnsettledUnknown())
			require.Equal(t, slices.Contains(test.known, "out"), slices.Contains(v.Unsettled(), "out"))
			edited := int64(0)
			if test.edit {
				edited = 1
			}
			require.Equal(t, edits+edited, v.Edits())
		})
	}
}

// TestConfineOfManyKeys forgets half of many keys, which are looked at in several steps.
func TestConfineOfManyKeys(t *testing.T) {
	in := api.Shard{Key: api.ShardByUID, End: 1 << 63}
	var v known.Versions
	want := 0
	for n := range 10_000 {
		uid := fmt.Sprint("uid-", n)
		v.Set(fmt.Sprint("a/", n), keytable.Version{ResourceVersion: "1", UID: types.UID(uid)}, 0)
		if in.Includes("a", uid) {
			want++
		}
	}
	require.Greater(t, want, 3000)
	require.Less(t, want, 7000)
	v.Confine(in)
	require.Equal(t, want, v.Len())
	for key, version := range v.All() {
		require.True(t, in.Includes("a", string(version.UID)), key)
	}
}
