package prune_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/internal/leaf/prune"
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
		fields := pruned(t, path)
		want := pod()
		change(want)
		all := objects(t)
		fields.Apply(all["typed"])
		require.Equal(t, want, all["typed"], path)
		fields.Apply(all["unstructured"])
		got := &corev1.Pod{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(all["unstructured"].(*unstructured.Unstructured).Object, got))
		require.Equal(t, want, got, path)
	}
}

func TestApplyToADeployment(t *testing.T) {
	deployment := objects(t)["deployment"].(*appsv1.Deployment)
	pruned(t, "spec.template.spec.volumes").Apply(deployment)
	require.Nil(t, deployment.Spec.Template.Spec.Volumes)
	require.NotNil(t, deployment.Spec.Template.Spec.Containers)
}

func TestInlined(t *testing.T) {
	volume := pod().Spec.Volumes[0]
	pruned(t, "emptyDir").Apply(&volume)
	require.Equal(t, corev1.Volume{Name: "v"}, volume)
}

func TestParseRefuses(t *testing.T) {
	for _, path := range []string{"", ".", "a..b", "a.", ".a", "metadata", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion", "kind", "apiVersion"} {
		_, err := prune.Parse(nil, []string{"spec", path})
		require.ErrorContains(t, err, "prune", "%q", path)
	}
	for _, path := range []string{"", ".", "a..b", "a.", ".a"} {
		_, err := prune.Parse([]string{"spec", path}, nil)
		require.ErrorContains(t, err, fmt.Sprintf("keep %q: empty field name", path))
	}
}

func TestWithoutPathsAllStays(t *testing.T) {
	for _, none := range [][]string{nil, {}} {
		fields, err := prune.Parse(none, none)
		require.NoError(t, err)
		require.True(t, fields.All())
		want, got := pod(), pod()
		fields.Apply(got)
		require.Equal(t, want, got)
		text, err := fields.AppendJSON([]byte("before"), []byte("{"))
		require.NoError(t, err)
		require.Equal(t, "before{", string(text), "not looked at")
		of := fields.Of(podType)
		require.True(t, of.Knows() && of.InProtobuf())
		require.NoError(t, of.Err())
		text, err = of.AppendProtobuf([]byte("before"), []byte("\x02"))
		require.NoError(t, err)
		require.Equal(t, "before\x02", string(text), "not looked at")
	}
}

// FuzzApply leaves of an object that is decoded what AppendJSON leaves of its text, once and for
// all, and always what identifies an object.
func FuzzApply(f *testing.F) {
	for _, path := range []string{"spec", `metadata.labels.a\.b/c`, "spec.containers.image", "metadata.creationTimestamp.wall", "status", "-", `\`,
		"metadata.labels", "metadata.managedFields.manager", "ObjectMeta.Name", "metadata.Name", "spec.volumes.emptyDir", "a\x00b", "metadata.name.x"} {
		f.Add(path, true)
		f.Add(path, false)
	}
	f.Fuzz(func(t *testing.T, path string, keep bool) {
		paths := [2][]string{}
		if keep {
			paths[0] = []string{path}
		} else {
			paths[1] = []string{path}
		}
		fields, err := prune.Parse(paths[0], paths[1])
		if err != nil {
			return
		}
		once, twice := objects(t), objects(t)
		before, err := json.Marshal(once["unstructured"])
		require.NoError(t, err)
		for name := range once {
			fields.Apply(once[name])
			fields.Apply(twice[name])
			fields.Apply(twice[name])
		}
		require.Equal(t, once, twice)
		want, err := fields.AppendJSON(nil, before)
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
		require.Equal(t, pod().TypeMeta, once["typed"].(*corev1.Pod).TypeMeta)
	})
}

// FuzzParse reads any names that are written as a path.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a\nb", "a.b\nc", `a\.b`, `\`, `a\`, `\.`, "", ".", "a..b", "metadata", "a\x00b", "\xff.é", "kind\na", "a\na"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names := strings.Split(text, "\n")
		unwritable := func(name string) bool { return strings.HasSuffix(name, `\`) || !utf8.ValidString(name) }
		if slices.ContainsFunc(names, unwritable) {
			_, _ = prune.Parse(names, names)
			return
		}
		escaped := slices.Clone(names)
		var last, whole, without interface{} = names[len(names)-1], "value", map[string]interface{}{}
		for i := len(names) - 1; i >= 0; i-- {
			escaped[i] = strings.ReplaceAll(names[i], ".", `\.`)
			whole = map[string]interface{}{names[i]: whole}
			if i < len(names)-1 {
				without = map[string]interface{}{names[i]: without}
			}
		}
		path := strings.Join(escaped, ".")
		_, err := prune.Parse([]string{path}, nil)
		if slices.Contains(names, "") {
			require.EqualError(t, err, fmt.Sprintf("keep %q: empty field name", path))
			return
		}
		require.NoError(t, err)
		fields, err := prune.Parse(nil, []string{path})
		if err != nil {
			require.ErrorContains(t, err, "needed to identify")
			return
		}
		object, err := json.Marshal(whole)
		require.NoError(t, err)
		got, err := fields.AppendJSON(nil, object)
		require.NoError(t, err)
		want, err := json.Marshal(without)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "without %q", last)
	})
}
