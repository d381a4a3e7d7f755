package protoobject_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/protoobject"
	"github.com/rvinformer/informer/internal/testkit/samplepod"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pod has every field of ObjectMeta.
func pod() *corev1.Pod {
	pod := samplepod.New(samplepod.Identity{
		App: "shop", Namespace: "team-7", Node: "node-7", ReplicaSet: "shop-5d4f7c", Suffix: "00007", Hash: "5d4f7c9abcde",
		UID: "5f7e4c1a-2b3d-4e5f-8a9b-0c1d2e3f4a5b", OwnerUID: "6a7e4c1a-2b3d-4e5f-8a9b-0c1d2e3f4a5b",
		ResourceVersion: "1000021", Created: time.Unix(1790000000, 0),
	})
	seconds, at := int64(30), pod.CreationTimestamp
	pod.SelfLink, pod.Generation, pod.Finalizers = "/link", 7, []string{"a", "b"}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &seconds
	return pod
}

var known = protoobject.Known{Name: "shop-5d4f7c-00007", UID: "5f7e4c1a-2b3d-4e5f-8a9b-0c1d2e3f4a5b", ResourceVersion: "1000021"}

func encoded(t testing.TB, obj interface{ Marshal() ([]byte, error) }) []byte {
	b, err := obj.Marshal()
	require.NoError(t, err)
	return b
}

// check holds Unmarshal against the generated code.
func check[T any, P interface {
	*T
	protoobject.Message
}](t *testing.T, message []byte, pool *protoobject.Pool) {
	var want, got T
	before := bytes.Clone(message)
	P(&want).Reset()
	wrong := P(&want).Unmarshal(message)
	// The strings that are known are checked twice, and those that are shared are shared then.
	for range 3 {
		P(&got).Reset()
		err := pool.Unmarshal(message[:len(message):len(message)], known, P(&got))
		require.Equal(t, before, message)
		if wrong != nil {
			require.EqualError(t, err, wrong.Error())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func FuzzUnmarshal(f *testing.F) {
	whole := encoded(f, pod())
	f.Add(whole)
	f.Add(append(bytes.Clone(whole), whole...))
	f.Add(whole[:len(whole)-9])
	f.Add(encoded(f, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"a": "b"}}}))
	f.Add(encoded(f, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}})[2:])
	f.Add([]byte{0x0a, 4, 0x5a, 2, 0x0a, 0x09, 0x12, 0})
	f.Add([]byte{0x0a, 3, 0xa0, 0x06, 1})
	f.Add([]byte{0x08, 1})
	var pool protoobject.Pool
	f.Fuzz(func(t *testing.T, message []byte) {
		check[corev1.Pod](t, message, &pool)
		check[metav1.PartialObjectMetadata](t, message, &pool)
		check[metav1.PartialObjectMetadata](t, message, nil)
	})
}

func TestStringsOfSiblingsAreNotAllocated(t *testing.T) {
	message := encoded(t, &metav1.PartialObjectMetadata{ObjectMeta: pod().ObjectMeta})
	var pool protoobject.Pool
	// A pool may lose what it has, above all in a race test: the fewest count.
	fewest := func(decode func(*metav1.PartialObjectMetadata) error) float64 {
		least := math.Inf(1)
		for range 1000 {
			least = min(least, testing.AllocsPerRun(1, func() { require.NoError(t, decode(&metav1.PartialObjectMetadata{})) }))
		}
		return least
	}
	generated := fewest(func(into *metav1.PartialObjectMetadata) error { return into.Unmarshal(message) })
	own := fewest(func(into *metav1.PartialObjectMetadata) error { return pool.Unmarshal(message, known, into) })
	require.Less(t, own, generated-20)
}

// Slices of siblings are equal, longer or shorter, with elements that point to something, and under
// different fields.
func TestRunsOfSiblings(t *testing.T) {
	variable := func(n int) corev1.EnvVar {
		made := corev1.EnvVar{Name: fmt.Sprint("NAME_", n), Value: fmt.Sprint("value ", n)}
		if n%3 == 1 {
			made.Value, made.ValueFrom = "", &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: fmt.Sprint("metadata.", n)}}
		}
		return made
	}
	var pool protoobject.Pool
	for round := range 3 {
		for _, n := range []int{0, 1, 2, 11, 63, 64, 65, 200, 11} {
			var all corev1.Pod
			for i := range 3 {
				container := corev1.Container{Name: "main", Command: []string{"/usr/bin/program"}}
				for k := range n {
					container.Env = append(container.Env, variable(k+i%2*round))
					container.Args = append(container.Args, fmt.Sprint("--argument=", k))
				}
				container.Command = append(container.Command, container.Args...)
				all.Spec.InitContainers = append(all.Spec.InitContainers, container)
				all.Spec.Containers = append(all.Spec.Containers, container)
			}
			requireSame(t, &pool, encoded(t, &all), reflect.TypeFor[corev1.Pod]())
		}
	}
}

func TestChangedObjectLeavesSiblingsAlone(t *testing.T) {
	message := encoded(t, pod())
	var pool protoobject.Pool
	for range 5 {
		var own corev1.Pod
		require.NoError(t, pool.Unmarshal(message, known, &own))
		require.Equal(t, pod().Spec.Containers[0].Env, own.Spec.Containers[0].Env)
		require.Equal(t, pod().Spec.Tolerations, own.Spec.Tolerations)
		own.Spec.Containers[0].Env[3].Value = "changed"
		*own.Spec.Tolerations[0].TolerationSeconds = 1
	}
}

// A string that is too long for the table of strings shows that a run was copied.
func TestRunsOfSiblingsAreCopied(t *testing.T) {
	variables := []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{}}, {Name: "B", Value: strings.Repeat("long", 70)}}
	message := encoded(t, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Env: variables}}}})
	for range 10 { // two runs may share a slot of a pool, for as long as it lives
		var pool protoobject.Pool
		var last *byte
		for range 1000 { // a pool may lose what it has, above all in a race test
			var own corev1.Pod
			require.NoError(t, pool.Unmarshal(message, known, &own))
			require.Equal(t, variables, own.Spec.Containers[0].Env)
			value := unsafe.StringData(own.Spec.Containers[0].Env[1].Value)
			if value == last {
				return
			}
			last = value
		}
	}
	t.Fatal("each time decoded")
}

// A user changes an object. The next ones, whose metadata is copied, are as the server sent them.
func TestChangedMetadataLeavesSiblingsAlone(t *testing.T) {
	message := encoded(t, pod())
	var want corev1.Pod
	require.NoError(t, want.Unmarshal(message))
	var pool protoobject.Pool
	for range 5 {
		var own corev1.Pod
		require.NoError(t, pool.Unmarshal(message, known, &own))
		require.Equal(t, want.ObjectMeta, own.ObjectMeta)
		own.Labels["more"], own.Annotations["more"] = "x", "x"
		owner := &own.OwnerReferences[0]
		*owner.Controller = !*owner.Controller
		require.NotEqual(t, *owner.Controller, *owner.BlockOwnerDeletion)
		owner.Name = "changed"
		for i := range own.ManagedFields {
			entry := &own.ManagedFields[i]
			entry.Time.Time = entry.Time.Add(time.Hour)
			entry.FieldsV1.GetRawBytes()[0] = 'x'
			entry.Manager = "changed"
		}
	}
}

// Siblings differ in one thing, and in what follows it.
func TestMetadataOfUnlikeSiblings(t *testing.T) {
	variants := []func(m *metav1.ObjectMeta){
		func(*metav1.ObjectMeta) {},
		func(m *metav1.ObjectMeta) { m.Labels["zz"] = "after all others" },
		func(m *metav1.ObjectMeta) { m.Labels = nil },
		func(m *metav1.ObjectMeta) { m.Labels, m.Annotations = m.Annotations, m.Labels },
		func(m *metav1.ObjectMeta) { m.Annotations["x"] = strings.Repeat("long", 2000) },
		func(m *metav1.ObjectMeta) { m.OwnerReferences[0].Controller = nil },
		func(m *metav1.ObjectMeta) { *m.OwnerReferences[0].BlockOwnerDeletion = false },
		func(m *metav1.ObjectMeta) { m.OwnerReferences = append(m.OwnerReferences, m.OwnerReferences...) },
		func(m *metav1.ObjectMeta) {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{}, m.OwnerReferences[0])
		},
		func(m *metav1.ObjectMeta) { m.ManagedFields[0].Time = &metav1.Time{Time: time.Unix(1790000077, 0)} },
		func(m *metav1.ObjectMeta) { m.ManagedFields[0].Time = &metav1.Time{Time: time.Unix(1, 0)} },
		func(m *metav1.ObjectMeta) { m.ManagedFields[0].Time = nil },
		func(m *metav1.ObjectMeta) { m.ManagedFields[0].FieldsV1 = nil },
		func(m *metav1.ObjectMeta) { m.ManagedFields[0].FieldsV1 = &metav1.FieldsV1{} },
		func(m *metav1.ObjectMeta) { m.ManagedFields[1].Subresource = "other" },
		func(m *metav1.ObjectMeta) {
			for range 3 {
				m.ManagedFields = append(m.ManagedFields, m.ManagedFields...)
			}
		},
	}
	var pool protoobject.Pool
	for _, a := range variants {
		for _, b := range variants {
			for _, change := range []func(*metav1.ObjectMeta){a, b, a, a, b} {
				changed := &metav1.PartialObjectMetadata{ObjectMeta: *pod().ObjectMeta.DeepCopy()}
				change(&changed.ObjectMeta)
				check[metav1.PartialObjectMetadata](t, encoded(t, changed), &pool)
			}
		}
	}
}
