package prune_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/prune"
)

func pod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u", ResourceVersion: "1",
			Labels: map[string]string{"a.b/c": "x", "d": "y"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}},
	}
}

func objects(t testing.TB) map[string]interface{} {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod())
	require.NoError(t, err)
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pod().Spec}}}
	return map[string]interface{}{"typed": pod(), "unstructured": &unstructured.Unstructured{Object: m}, "deployment": deployment,
		"by value": *pod(), "nil": nil, "nil pod": (*corev1.Pod)(nil), "empty": &unstructured.Unstructured{}}
}

func TestApply(t *testing.T) {
	for path, change := range map[string]func(*corev1.Pod){
		"metadata.managedFields": func(p *corev1.Pod) { p.ManagedFields = nil },
		`metadata.labels.a\.b/c`: func(p *corev1.Pod) { delete(p.Labels, "a.b/c") },
		"metadata.labels":        func(p *corev1.Pod) { p.Labels = nil },
		"spec.nodeName":          func(p *corev1.Pod) { p.Spec.NodeName = "" },
		"spec.containers.image":  func(*corev1.Pod) {},
		"spec.none.at.all":       func(*corev1.Pod) {},
	} {
		paths, err := prune.Parse([]string{path})
		require.NoError(t, err)
		want := pod()
		change(want)
		all := objects(t)
		paths.Apply(all["typed"])
		require.Equal(t, want, all["typed"], path)
		paths.Apply(all["unstructured"])
		got := &corev1.Pod{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(all["unstructured"].(*unstructured.Unstructured).Object, got))
		require.Equal(t, want, got, path)
	}
}

func TestApplyToADeployment(t *testing.T) {
	paths, err := prune.Parse([]string{"spec.template.spec.volumes"})
	require.NoError(t, err)
	deployment := objects(t)["deployment"].(*appsv1.Deployment)
	paths.Apply(deployment)
	require.Nil(t, deployment.Spec.Template.Spec.Volumes)
	require.NotNil(t, deployment.Spec.Template.Spec.Containers)
}

func TestInlined(t *testing.T) {
	paths, err := prune.Parse([]string{"emptyDir"})
	require.NoError(t, err)
	volume := pod().Spec.Volumes[0]
	paths.Apply(&volume)
	require.Equal(t, corev1.Volume{Name: "v"}, volume)
}

func TestParseRefuses(t *testing.T) {
	for _, path := range []string{"", ".", "a..b", "a.", ".a", "metadata", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion", "kind", "apiVersion"} {
		_, err := prune.Parse([]string{"spec", path})
		require.ErrorContains(t, err, "prune", "%q", path)
	}
}

// FuzzApply drops the same from an object that is decoded as AppendJSON drops from its text, once and for all, and
// never what identifies an object.
func FuzzApply(f *testing.F) {
	for _, path := range []string{"spec", `metadata.labels.a\.b/c`, "spec.containers.image", "metadata.creationTimestamp.wall", "status", "-", `\`,
		"metadata.labels", "metadata.managedFields.manager", "ObjectMeta.Name", "metadata.Name", "spec.volumes.emptyDir", "a\x00b", "metadata.name.x"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		paths, err := prune.Parse([]string{path})
		if err != nil {
			return
		}
		once, twice := objects(t), objects(t)
		before, err := json.Marshal(once["unstructured"])
		require.NoError(t, err)
		for name := range once {
			paths.Apply(once[name])
			paths.Apply(twice[name])
			paths.Apply(twice[name])
		}
		require.Equal(t, once, twice)
		want, err := paths.AppendJSON(nil, before)
		require.NoError(t, err)
		got, err := json.Marshal(once["unstructured"])
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
		for _, name := range []string{"typed", "unstructured"} {
			m, err := meta.Accessor(once[name])
			require.NoError(t, err)
			require.Equal(t, []string{"n", "p", "u", "1"}, []string{m.GetNamespace(), m.GetName(), string(m.GetUID()), m.GetResourceVersion()})
		}
		require.Equal(t, *pod(), once["by value"], "which cannot be changed")
	})
}

// FuzzParse reads paths, which come back as they are when they are written again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a.b\na\na.b.c", `a\.b.c`, `a\\.b`, `\`, `a\`, `\.`, "", ".", "a..b", "metadata", "a\x00b", "\xff.é", "b\na", "a\na"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		given := strings.Split(text, "\n")
		paths, err := prune.Parse(given)
		if err != nil {
			require.ErrorContains(t, err, "prune ")
			return
		}
		require.Len(t, paths, len(given))
		require.True(t, slices.IsSortedFunc(paths, slices.Compare))
		var again []string
		for _, fields := range paths {
			require.NotContains(t, fields, "")
			for i, field := range fields {
				fields[i] = strings.ReplaceAll(field, ".", `\.`)
			}
			again = append(again, strings.Join(fields, "."))
		}
		slices.Sort(given)
		slices.Sort(again)
		require.Equal(t, given, again)
	})
}
