package server

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlySelectsNameAndNamespace(t *testing.T) {
	for key, want := range map[string]string{"a/1": "x=y,metadata.name=1,metadata.namespace=a", "1": "x=y,metadata.name=1"} {
		opts := metav1.ListOptions{FieldSelector: "x=y"}
		Only(key)(&opts)
		require.Equal(t, want, opts.FieldSelector)
	}
}
