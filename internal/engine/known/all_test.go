package known_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/known"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// TestResourceVersionsWhileTheyChange changes a key in every way that there is, amid a walk that
// has the key before it.
func TestResourceVersionsWhileTheyChange(t *testing.T) {
	const keys = 100
	key := func(i int) string { return fmt.Sprintf("a/%d", i) }
	for name, test := range map[string]struct {
		change func(v *known.Versions, key string)
		want   string // empty for a key that is gone
	}{
		"set":    {func(v *known.Versions, key string) { v.Set(key, keytable.Version{ResourceVersion: "2"}, 0) }, "2"},
		"delete": {func(v *known.Versions, key string) { v.Delete(key) }, ""},
		"confine": {func(v *known.Versions, key string) {
			in := api.Shard{Key: api.ShardByUID, End: 1 << 63}
			v.Set(key, keytable.Version{ResourceVersion: "2", UID: uidOutside(in)}, 0)
			v.Confine(in)
		}, ""},
		"show": {func(v *known.Versions, key string) { v.Show(key, keytable.Version{}, v.Begin(), 0) }, "1"},
		"read": {func(v *known.Versions, key string) {
			var others known.Versions
			for i := range keys {
				others.Set(fmt.Sprintf("a/%d", i), keytable.Version{ResourceVersion: "3"}, 0)
			}
			var written strings.Builder
			_, err := others.WriteTo(&written)
			require.NoError(t, err)
			_, err = v.ReadFrom(strings.NewReader(written.String()))
			require.NoError(t, err)
		}, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			var v known.Versions
			for i := range keys {
				v.Set(key(i), keytable.Version{ResourceVersion: "1"}, 0)
			}
			seen := map[string]string{}
			for first, resourceVersion := range v.ResourceVersions() {
				if len(seen) == 0 {
					for i := range keys {
						if key(i) != first {
							test.change(&v, key(i))
						}
					}
				}
				seen[first] = resourceVersion
			}
			for key, resourceVersion := range seen {
				if resourceVersion != test.want {
					require.Equal(t, "1", resourceVersion, "%s is the first", key)
					delete(seen, key)
					break
				}
			}
			for key, resourceVersion := range seen {
				require.Contains(t, []string{test.want}, resourceVersion, key)
			}
			if test.want == "" {
				require.Empty(t, seen)
			} else {
				require.GreaterOrEqual(t, len(seen), keys-1)
			}
		})
	}
}

// TestAddAndRemoveMakeNoKeys compares with calls that are given a key.
func TestAddAndRemoveMakeNoKeys(t *testing.T) {
	var v known.Versions
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-0001", Name: "deployment-000001-7d9f4c5b68-bbbbb", UID: "uid", ResourceVersion: "300000000",
	}}
	key, version := "team-0001/deployment-000001-7d9f4c5b68-bbbbb", keytable.Version{ResourceVersion: "300000000", UID: "uid"}
	v.Set("team-0001/another", version, 0) // a table that becomes empty gives its memory back
	ofKeys := testing.AllocsPerRun(1000, func() {
		v.Delete(key)
		v.Set(key, version, 0)
	})
	require.Equal(t, ofKeys, testing.AllocsPerRun(1000, func() {
		if v.Remove(obj) != nil || v.Add(obj) != nil {
			t.Error("not stored")
		}
	}))
	got, _ := v.Get(key)
	require.Equal(t, version, got)
}
