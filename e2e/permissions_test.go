package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/e2e/cluster"
)

// A service account with just the permissions of docs/operating.md runs an informer with a
// checkpoint: the informer lists, watches, resumes, and asks which cluster it reads after its watch
// broke. No request is refused.
func TestPermissionsOfTheManualSuffice(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	network := startProxy(t, c)
	newPods(ctx, t, c, 20)
	everywhere := &cluster.Objects{Namespace: corev1.NamespaceAll, Resource: cluster.PodResource}
	config := permitted(ctx, t, c)
	config.Host = through(network, c).Host

	path := filepath.Join(t.TempDir(), "pods")
	known := newMirror(nil)
	for run := range 2 {
		seen := &tap{}
		s := start(ctx, t, known, informer.InformerConfig{
			ListerWatcher: source(t, seen.install(rest.CopyConfig(config)), everywhere),
			Checkpoint:    informer.FileCheckpoint(path), Backoff: quick(),
		})
		s.waitSynced(ctx, t)
		awaitOne(ctx, t, seen, "the watch is there", exchange.isGoodWatch)
		require.Equal(t, run == 0, seen.count(exchange.isSet) > 0, "a list in run %d", run)
		requireIdentity(t, seen)

		questions := seen.count(exchange.isOfServer)
		network.Drop()
		network.Heal()
		err := seen.await(ctx, "the cluster is asked for again", func() bool { return seen.countLocked(exchange.isOfServer) > questions })
		require.NoError(t, err)
		s.stop(t)
		requireIdentity(t, seen)
		require.Zero(t, seen.count(exchange.isForbidden))
		known = newMirror(known.known())
	}
}

func (e exchange) isForbidden() bool { return e.status == http.StatusForbidden }

// requireIdentity checks that the server has said which cluster it is of.
func requireIdentity(t *testing.T, seen *tap) {
	t.Helper()
	require.Positive(t, seen.count(func(e exchange) bool { return e.isOfServer() && e.status == http.StatusOK }))
}

// awaitOne returns when there was an exchange of the kind.
func awaitOne(ctx context.Context, t *testing.T, seen *tap, what string, is func(exchange) bool) {
	t.Helper()
	require.NoError(t, seen.await(ctx, what, func() bool { return seen.countLocked(is) > 0 }))
}

// permitted is the configuration of a service account with the permissions of the manual.
func permitted(ctx context.Context, t *testing.T, c *cluster.Cluster) *rest.Config {
	t.Helper()
	admin, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	role, binding := rolesOfManual(t)
	account := binding.Subjects[0]
	_, err = admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: account.Namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account.Name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := admin.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)

	config := c.Config()
	config.BearerToken = token.Status.Token
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	var last error // the server takes a moment to know of the role
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
		return last == nil, nil
	})
	require.NoError(t, err, "last answer: %v", last)
	_, err = client.CoreV1().ConfigMaps(corev1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	require.Error(t, err, "nothing else is permitted")
	return config
}

// rolesOfManual are the objects that docs/operating.md shows.
func rolesOfManual(t *testing.T) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "operating.md"))
	require.NoError(t, err)
	_, block, found := strings.Cut(string(page), "```yaml\napiVersion: rbac.authorization.k8s.io/v1\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	objects := yaml.NewYAMLOrJSONDecoder(strings.NewReader("apiVersion: rbac.authorization.k8s.io/v1\n"+block), 1024)
	require.NoError(t, objects.Decode(&role))
	require.NoError(t, objects.Decode(&binding))
	require.True(t, errors.Is(objects.Decode(&struct{}{}), io.EOF), "two objects")
	require.Equal(t, "ClusterRole", role.Kind)
	require.Equal(t, "ClusterRoleBinding", binding.Kind)
	require.Len(t, binding.Subjects, 1)
	return &role, &binding
}
