package api_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
)

// FuzzParse parses any text. What it takes for a shard is written in the same way again, and has
// the objects that the selector of apimachinery has.
func FuzzParse(f *testing.F) {
	for _, s := range (api.Shard{}).Split(3) {
		f.Add(s.String(), "uid", "namespace")
	}
	f.Add("shardRange(object.metadata.namespace, '0x8000000000000000', '0x10000000000000000')", "", "")
	f.Add("shardRange(object.metadata.uid, '0x0', '0x8000000000000000')", "", "")
	f.Add("shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')", "", "")
	f.Fuzz(func(t *testing.T, text, uid, namespace string) {
		s, err := api.ParseShard(text)
		if err != nil {
			return
		}
		if s.IsAll() {
			if s.String() != "" {
				t.Fatalf("all is %q", s)
			}
			return
		}
		if s.String() != text {
			t.Fatalf("%q is written %q", text, s)
		}
		quoted := strings.Split(text, "'")
		theirs := sharding.NewSelector(sharding.ShardRangeRequirement{Key: string(s.Key), Start: quoted[1], End: quoted[3]})
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, UID: types.UID(uid)}}
		if want, err := theirs.Matches(object); err != nil || want != s.Includes(namespace, uid) {
			t.Fatalf("%q has namespace %q, UID %q: %v, want %v (%v)", text, namespace, uid, !want, want, err)
		}
	})
}
