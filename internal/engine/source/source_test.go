package source

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/moment"
)

// podSource is the source of a ListerWatcher of pods.
func podSource(lw *cache.ListWatch) *Source {
	expected := object.Expect(&corev1.Pod{}, "", object.Public{})
	return New(Options{ListerWatcher: lw, Memory: &Memory{}, Expected: &expected, Report: &report.Report{Handler: func(error) {}}})
}

// The newest state comes in pages from every server: only a list from "0" would come whole.
func TestOnlyPagesFromTheCacheTellThatItPages(t *testing.T) {
	s := podSource(&cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: "more"}}, nil
	}})
	for _, from := range []string{"", "0"} {
		_, err := s.Page(t.Context(), metav1.ListOptions{Limit: 1, ResourceVersion: from}, func(object.Item, error) error { return nil })
		require.NoError(t, err)
		require.Equal(t, from == "0", s.CachePaged())
	}
}

func TestObjectOfAJointListArrivesWhenItIsRead(t *testing.T) {
	s := podSource(&cache.ListWatch{})
	s.heard(time.Now())
	arrived := moment.Of(time.Now().Add(-time.Minute))
	it, err := s.readListed(&SharedEvent{object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "1", ResourceVersion: "1"}}, arrived: arrived})
	require.NoError(t, err)
	require.Equal(t, arrived, it.Arrived)
}
