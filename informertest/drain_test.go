package informertest_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rvinformer/informer/informertest"
)

// Watches end one after the other, in order, and the server goes on.
func TestWatchesAreDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{InMemory: true})
		first, second, third := follow(t, s, configMapsPath), follow(t, s, configMapsPath), follow(t, s, configMapsPath)
		began := time.Now()
		s.DrainWatches(t.Context(), time.Minute)
		require.Equal(t, time.Minute, time.Since(began))
		for _, w := range []*stream{first, second, third} {
			w.wantEnd()
		}
		s.DrainWatches(t.Context(), time.Minute)
		require.Equal(t, time.Minute, time.Since(began), "none was left")
		again := follow(t, s, configMapsPath, "resourceVersion", "1")
		create(t, s, configMap("a", "n", "x"))
		again.want("ADDED n 2")
	})
}

// The answer to a DELETE has the version of the deletion, as that of a kube-apiserver from 1.38 on.
func TestDeletionHasVersion(t *testing.T) {
	s := start(t, informertest.Options{})
	create(t, s, configMap("a", "n", "x"))
	client, err := kubernetes.NewForConfig(s.Config())
	require.NoError(t, err)
	var status metav1.Status
	answer := client.CoreV1().RESTClient().Delete().Namespace("a").Resource("configmaps").Name("n").Do(t.Context())
	require.NoError(t, answer.Error())
	text, err := answer.Raw()
	require.NoError(t, err)
	_, _, err = scheme.Codecs.UniversalDeserializer().Decode(text, nil, &status)
	require.NoError(t, err)
	require.Equal(t, metav1.StatusSuccess, status.Status)
	require.Equal(t, s.ResourceVersion(), status.ResourceVersion)
	_, err = strconv.Atoi(status.ResourceVersion)
	require.NoError(t, err)
}
