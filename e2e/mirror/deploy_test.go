package mirror

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/rvinformer/informer/e2e/cluster"
)

// deployment is the folder of the objects that deploy mirror.
var deployment = filepath.Join("..", "..", "mirror", "deploy")

// A kube-apiserver accepts every object of deploy, field by field, and its pods in a namespace that
// is restricted.
func TestServerAcceptsDeploy(t *testing.T) {
	ctx := testContext(t)
	a := newApplier(t, away.Get(t).Config())
	for _, part := range []string{"home", "cluster", "try"} {
		objects := render(t, part)
		for _, object := range objects {
			if object.GetKind() == "Namespace" {
				a.apply(ctx, t, object) // a dry run of the others needs it
			}
		}
		for _, object := range objects {
			a.apply(ctx, t, object, metav1.DryRunAll)
		}
	}
}

// What pods would be of a Deployment is checked by no dry run of the Deployment itself: the
// namespace refuses pods, not templates.
func TestPodsOfDeployAreRestricted(t *testing.T) {
	ctx := testContext(t)
	config := away.Get(t).Config()
	a := newApplier(t, config)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	pods := 0
	for _, object := range render(t, "try") {
		switch object.GetKind() {
		case "Namespace":
			require.Equal(t, "restricted", object.GetLabels()["pod-security.kubernetes.io/enforce"])
			a.apply(ctx, t, object)
		case "Deployment":
			of := typed[appsv1.Deployment](t, object)
			pod := &corev1.Pod{ObjectMeta: of.Spec.Template.ObjectMeta, Spec: of.Spec.Template.Spec}
			pod.GenerateName = of.Name + "-"
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			_, err := client.CoreV1().Pods(of.Namespace).Create(ctx, pod, dry)
			require.NoError(t, err, of.Name)
			pods++

			pod.Spec.Containers[0].SecurityContext = nil
			_, err = client.CoreV1().Pods(of.Namespace).Create(ctx, pod, dry)
			require.ErrorContains(t, err, `violates PodSecurity "restricted`, "the namespace does enforce it")
		}
	}
	require.Equal(t, 2, pods, "mirror and PostgreSQL")
}

// render is what kubectl apply -k sends of a part of deploy, those first that others need.
func render(t *testing.T, part string) []*unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(deployment, part))
	require.NoError(t, err)
	var objects []*unstructured.Unstructured
	for _, r := range resources.Resources() {
		content, err := r.Map()
		require.NoError(t, err)
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	require.NotEmpty(t, objects)
	return objects
}

// only is the one object of a kind.
func only(t *testing.T, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	of := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
	require.Len(t, of, 1, kind)
	return of[0]
}

func typed[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	into := new(T)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true))
	return into
}

// applier applies objects as kubectl apply --server-side does.
type applier struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newApplier(t *testing.T, config *rest.Config) *applier {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	groups, err := restmapper.GetAPIGroupResources(asked)
	require.NoError(t, err)
	return &applier{client, restmapper.NewDiscoveryRESTMapper(groups)}
}

func (a *applier) apply(ctx context.Context, t *testing.T, object *unstructured.Unstructured, dryRun ...string) {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	require.NoError(t, err)
	var at dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		require.NotEmpty(t, object.GetNamespace(), "%s %s", kind.Kind, object.GetName())
		at = a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	text, err := object.MarshalJSON()
	require.NoError(t, err)
	_, err = at.Patch(ctx, object.GetName(), "application/apply-patch+yaml", text, metav1.PatchOptions{
		FieldManager: "e2e", FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
	})
	require.NoError(t, err, "%s %s", kind.Kind, object.GetName())
}

// mirrorArgs are the arguments of the Deployment's container, by flag.
func mirrorArgs(t *testing.T) (args []string, of *appsv1.Deployment) {
	t.Helper()
	of = typed[appsv1.Deployment](t, only(t, render(t, "home"), "Deployment"))
	return of.Spec.Template.Spec.Containers[0].Args, of
}

// resourcesOf are the resources that the Deployment mirrors.
func resourcesOf(t *testing.T) (resources []string) {
	t.Helper()
	args, _ := mirrorArgs(t)
	for _, arg := range args {
		if list, is := strings.CutPrefix(arg, "--resources="); is {
			resources = append(resources, strings.Split(list, ",")...)
		}
	}
	require.NotEmpty(t, resources)
	return resources
}

// accountIn applies a part of deploy to a cluster, and returns what a client has to know that is
// its service account.
func accountIn(ctx context.Context, t *testing.T, c *cluster.Cluster, part string) *rest.Config {
	t.Helper()
	a := newApplier(t, c.Config())
	objects := render(t, part)
	for _, object := range objects {
		a.apply(ctx, t, object)
	}
	account := only(t, objects, "ServiceAccount")
	admin, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	token, err := admin.CoreV1().ServiceAccounts(account.GetNamespace()).CreateToken(ctx, account.GetName(), &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(24 * time.Hour / time.Second))}, // an hour by default, and rounds may take longer
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := c.Config()
	config.BearerToken = token.Status.Token
	return config
}
