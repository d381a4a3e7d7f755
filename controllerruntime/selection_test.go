package controllerruntime_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rvinformer/informer/controllerruntime"
)

// from is a selector that says where it was set.
func from(where string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{"from": where})
}

// The cases are those of controller-runtime's TestDefaultOpts, told by what the server is asked
// for.
func TestSelectionIsThatOfControllerRuntime(t *testing.T) {
	for name, c := range map[string]struct {
		opts cache.Options
		// pods and nodes are the namespaces, labels and fields that are asked for.
		pods, nodes []string
	}{
		"nothing": {
			pods: []string{"* [] []"}, nodes: []string{"* [] []"},
		},
		"defaults": {
			opts: cache.Options{DefaultLabelSelector: from("default"), DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", "x")},
			pods: []string{"* [from=default] [metadata.name=x]"}, nodes: []string{"* [from=default] [metadata.name=x]"},
		},
		"by object wins over namespaces and defaults": {
			opts: cache.Options{
				ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
					Namespaces: map[string]cache.Config{"one": {}},
					Label:      from("object"),
				}},
				DefaultNamespaces:    map[string]cache.Config{"one": {LabelSelector: from("namespace")}},
				DefaultLabelSelector: from("default"),
			},
			pods: []string{"one [from=object] []"}, nodes: []string{"* [from=default] []"},
		},
		"default namespaces win over defaults": {
			opts: cache.Options{
				ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
					Namespaces: map[string]cache.Config{"one": {}, "two": {}},
				}},
				DefaultNamespaces:    map[string]cache.Config{"one": {LabelSelector: from("namespace")}},
				DefaultLabelSelector: from("default"),
			},
			pods: []string{"one [from=namespace] []", "two [from=default] []"}, nodes: []string{"* [from=default] []"},
		},
		"namespaces of the kind are the default ones": {
			opts: cache.Options{
				ByObject:          map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: from("object")}},
				DefaultNamespaces: map[string]cache.Config{"one": {}, "two": {LabelSelector: from("namespace")}},
			},
			pods: []string{"one [from=object] []", "two [from=namespace] []"}, nodes: []string{"* [] []"},
		},
		"an empty map of namespaces is all": {
			opts: cache.Options{
				ByObject:          map[client.Object]cache.ByObject{&corev1.Pod{}: {Namespaces: map[string]cache.Config{}}},
				DefaultNamespaces: map[string]cache.Config{"one": {}},
			},
			pods: []string{"* [] []"}, nodes: []string{"* [] []"},
		},
		"everything is not defaulted": {
			opts: cache.Options{
				DefaultNamespaces:    map[string]cache.Config{"one": {LabelSelector: labels.Everything()}},
				DefaultLabelSelector: from("default"),
			},
			pods: []string{"one [] []"}, nodes: []string{"* [from=default] []"},
		},
		"all namespaces, and some of them": {
			opts: cache.Options{DefaultNamespaces: map[string]cache.Config{
				"two": {LabelSelector: from("two")},
				"one": {},
				"":    {FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "n")},
			}},
			pods:  []string{"* [] [metadata.namespace!=one,metadata.namespace!=two,spec.nodeName=n]", "one [] []", "two [from=two] []"},
			nodes: []string{"* [] []"},
		},
		"all namespaces, and one of them, of a kind": {
			opts: cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
				Namespaces: map[string]cache.Config{"one": {LabelSelector: from("one")}, "": {}},
			}}},
			pods: []string{"* [] [metadata.namespace!=one]", "one [from=one] []"}, nodes: []string{"* [] []"},
		},
		"one namespace by its name": {
			opts: cache.Options{DefaultFieldSelector: fields.OneTermEqualSelector("metadata.namespace", "one")},
			pods: []string{"one [] [metadata.namespace=one]"}, nodes: []string{"* [] [metadata.namespace=one]"},
		},
	} {
		bubbleRun(t, name, func(t *testing.T, b *bench) {
			// Whether the server can select by a field is not the question.
			b.make(c.opts, controllerruntime.Options{})
			_, err := b.cache.GetInformer(t.Context(), &corev1.Pod{})
			require.NoError(t, err)
			_, err = b.cache.GetInformer(t.Context(), &corev1.Node{})
			require.NoError(t, err)
			b.begin()
			synctest.Wait()
			b.stop()
			asked := map[string][]string{}
			for _, r := range b.server.Requests() {
				if r.Verb != "list" && r.Verb != "watch" {
					continue
				}
				namespace := r.Namespace
				if namespace == "" {
					namespace = "*"
				}
				text := namespace + " [" + r.Options.LabelSelector + "] [" + r.Options.FieldSelector + "]"
				if all := asked[r.GroupVersionResource.Resource]; !slices.Contains(all, text) {
					asked[r.GroupVersionResource.Resource] = append(all, text)
				}
			}
			slices.Sort(asked["pods"])
			require.Equal(t, c.pods, asked["pods"])
			require.Equal(t, c.nodes, asked["nodes"])
		})
	}
}

func TestNamespacesAreReadTogether(t *testing.T) {
	bubble(t, func(t *testing.T, b *bench) {
		b.pods("one", 2)
		b.pods("two", 20)
		b.pods("three", 3)
		b.start(cache.Options{DefaultNamespaces: map[string]cache.Config{
			"one": {},
			"two": {LabelSelector: labels.SelectorFromSet(labels.Set{"team": "blue"})},
		}}, controllerruntime.Options{})
		list := func(opts ...client.ListOption) []string {
			var pods corev1.PodList
			require.NoError(t, b.cache.List(t.Context(), &pods, opts...))
			found := names(pods)
			slices.Sort(found)
			return found
		}
		require.Equal(t, []string{"one/pod-0", "one/pod-1", "two/pod-0", "two/pod-10"}, list())
		require.Equal(t, []string{"two/pod-0", "two/pod-10"}, list(client.InNamespace("two")))
		require.Equal(t, []string{"one/pod-0", "two/pod-0", "two/pod-10"}, list(client.MatchingLabels{"team": "blue"}))
		require.Len(t, list(client.Limit(3)), 3)
		require.Len(t, list(client.Limit(2)), 2)
		require.NoError(t, b.cache.IndexField(t.Context(), &corev1.Pod{}, "n", func(obj client.Object) []string { return []string{obj.GetLabels()["n"]} }))
		require.Equal(t, []string{"one/pod-0", "two/pod-0"}, list(client.MatchingFields{"n": "0"}))
		require.Equal(t, []string{"two/pod-10"}, list(client.MatchingFields{"n": "10"}, client.InNamespace("two")))
	})
}
