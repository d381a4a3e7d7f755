package objectsize_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/leaf/objectsize"
)

func TestOf(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-7d9f-x2x4z", Namespace: "shop", UID: "3b0a6d1e-6a0c-4b57", Labels: map[string]string{"app": "web"}}}
	for i := range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("c", i), Image: "registry.example.com/shop/web:v1.2.3", Args: []string{"--port=8080", "--verbose"},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Env:   []corev1.EnvVar{{Name: "DATABASE", Value: "postgres://db.shop.svc:5432"}},
		})
	}
	require.EqualValues(t, pod.Size(), objectsize.Of(pod))
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	require.NoError(t, err)
	text, err := json.Marshal(object)
	require.NoError(t, err)
	require.InEpsilon(t, len(text), objectsize.Of(&unstructured.Unstructured{Object: object}), 0.05)
	require.Zero(t, objectsize.Of("something else"))
}
