package object

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A kind is set as its setter sets it, whatever a server says that the version is.
func TestSetKindAsItsSetter(t *testing.T) {
	for _, version := range []string{"v1", "meta.k8s.io/v1", "", "/", "/v1", "group/", "a/b/c", "a//c"} {
		for _, kind := range []string{"Pod", ""} {
			said := metav1.TypeMeta{APIVersion: version, Kind: kind}
			want, got := metav1.TypeMeta{Kind: "old"}, metav1.TypeMeta{Kind: "old"}
			want.SetGroupVersionKind(said.GroupVersionKind())
			setKind(&got, said)
			require.Equal(t, want, got, "%q %q", version, kind)
		}
	}
}
