package samples_test

import (
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/testkit/samples"
)

const (
	objects  = 5000
	zipOneIn = 20 // takes long
)

// statistics are those of encoded objects.
type statistics struct {
	size, s2, gzip int // bytes, on average
	sibling        int // with s2, beside the first object of the same owner
	owners         int
	teams          map[string]int
}

// measure returns the statistics of objects, given one after the other.
func measure(t *testing.T, object func(i int) (metav1.Object, []byte)) (s statistics) {
	s.teams = map[string]int{}
	names, uids := map[string]bool{}, map[string]bool{}
	var before string
	var first *s2.Dict
	zipped := 0
	for i := range objects {
		meta, encoded := object(i)
		names[meta.GetNamespace()+"/"+meta.GetName()], uids[string(meta.GetUID())] = true, true
		s.teams[meta.GetLabels()["team"]]++
		s.size += len(encoded)
		s.s2 += len(s2.Encode(nil, encoded))
		if i%zipOneIn == 0 {
			s.gzip += gzipped(t, encoded)
			zipped++
		}
		if owner := string(meta.GetOwnerReferences()[0].UID); owner != before {
			before, first = owner, s2.MakeDict(encoded, nil)
			s.owners++
		} else {
			s.sibling += len(first.Encode(nil, encoded))
		}
	}
	require.Len(t, names, objects)
	require.Len(t, uids, objects)
	s.size, s.s2, s.gzip, s.sibling = s.size/objects, s.s2/objects, s.gzip/zipped, s.sibling/(objects-s.owners)
	t.Logf("%d bytes, s2 %d, gzip %d, s2 beside a sibling %d; %d owners", s.size, s.s2, s.gzip, s.sibling, s.owners)
	return s
}

func gzipped(t *testing.T, b []byte) int {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.Len()
}

// The figures that the pods are held against are of pods which were measured before these were
// made: 3,411 bytes of protobuf, 2,064 with s2, and 303 with s2 beside a sibling.
func TestPodsCompressLikeRealOnes(t *testing.T) {
	cluster := samples.Cluster{Seed: 1}
	containers := map[string]bool{}
	s := measure(t, func(i int) (metav1.Object, []byte) {
		pod := cluster.Pod(i, 0)
		require.Contains(t, []int{1, 2, 3}, len(pod.Spec.Containers))
		for k, c := range pod.Spec.Containers {
			require.GreaterOrEqual(t, len(c.Env), 3)
			require.LessOrEqual(t, len(c.Env), 18)
			id := pod.Status.ContainerStatuses[k].ContainerID
			require.False(t, containers[id], "two containers are %s", id)
			containers[id] = true
		}
		encoded, err := pod.Marshal()
		require.NoError(t, err)
		return pod, encoded
	})
	require.InEpsilon(t, 3411, s.size, 0.03)
	require.InEpsilon(t, 2064, s.s2, 0.06)
	require.InEpsilon(t, 1730, s.gzip, 0.04)
	require.InEpsilon(t, 303, s.sibling, 0.15)
	require.Equal(t, 400, s.owners)
	require.InDelta(t, samples.Teams, len(s.teams), 5)
}

func TestReleasesCompressLikeRealOnes(t *testing.T) {
	cluster := samples.Cluster{Seed: 1}
	s := measure(t, func(i int) (metav1.Object, []byte) {
		release := cluster.Release(i, 0)
		encoded, err := release.MarshalJSON()
		require.NoError(t, err)
		return release, encoded
	})
	require.InEpsilon(t, 2048, s.size, 0.04)
	require.InEpsilon(t, 1300, s.s2, 0.05)
	require.Equal(t, 400, s.owners)
}

func TestObjectsAreTheSameInEachProcess(t *testing.T) {
	cluster := samples.Cluster{Seed: 7}
	next := 499
	for i, pod := range cluster.Pods(499, 30, 3) {
		require.Equal(t, next, i)
		require.Equal(t, cluster.Pod(i, 3), pod)
		require.Equal(t, samples.Namespace(i), pod.Namespace)
		require.Equal(t, cluster.Release(i, 3), samples.Cluster{Seed: 7}.Release(i, 3))
		next++
	}
	require.Equal(t, 529, next)
	require.NotEqual(t, cluster.Pod(1, 0).UID, samples.Cluster{Seed: 8}.Pod(1, 0).UID)
}

func TestUpdatesChangeTheStatusAlone(t *testing.T) {
	cluster := samples.Cluster{Seed: 1}
	for i := range 50 {
		before := cluster.Pod(i, 0)
		for revision := 1; revision <= 10; revision++ {
			after := cluster.Pod(i, revision)
			require.NotEqual(t, before.Status, after.Status)
			require.NotEqual(t, before.ResourceVersion, after.ResourceVersion)
			require.NotEqual(t, before.ManagedFields, after.ManagedFields)
			restarts := int32(0)
			for _, c := range after.Status.ContainerStatuses {
				restarts += c.RestartCount
			}
			require.EqualValues(t, (revision+1)/2, restarts)
			require.Equal(t, withStatusOf(after, before), after)
			before = after
		}
	}
}

// withStatusOf is a copy of a pod with what an update may change as another pod has it.
func withStatusOf(other, pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion, pod.ManagedFields, pod.Status = other.ResourceVersion, other.ManagedFields, other.Status
	return pod
}
