package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/e2e/cluster"
)

// A bearer token is revoked before it is renewed, and another one renewed while
// watches run. Watches go on from where they were: nothing is listed.
func TestTrialOfARenewedToken(t *testing.T) {
	skipInShort(t)
	t.Parallel()
	ctx := testContext(t)
	c := usual.Get(t)
	network := startProxy(t, c)
	tokens := newAccount(ctx, t, c)
	first := tokens.renew(ctx, t)
	tr := newTrial(ctx, t, c, newRecognized(ctx, t, c), steady(), func() *rest.Config {
		config := through(network, c)
		config.BearerToken, config.BearerTokenFile = "", tokens.path
		return config
	})
	tr.awaitSynced(ctx, t)
	lists := tr.count(exchange.isSet)

	// A request that was let in goes on; a new one is refused.
	tokens.revoke(ctx, t, first)
	refused := tr.count(exchange.isUnauthorized)
	network.Drop()
	network.Heal()
	tr.awaitMore(ctx, t, refused, exchange.isUnauthorized)

	// Client-go looks into the file 50 seconds after it did so last, and not when it
	// was refused.
	watches := tr.count(exchange.isGoodWatch)
	tokens.renew(ctx, t)
	tr.awaitMore(ctx, t, watches, exchange.isGoodWatch)
	tokens.renew(ctx, t)
	require.NoError(t, tr.writer.Await(ctx, 100))
	tr.judge(ctx, t)
	require.Equal(t, lists, tr.count(exchange.isSet), "nothing is listed again")
}

// newRecognized fills a new namespace with pods that a trial is not to list again. A follower that
// does not know yet which cluster it reads asks for objects that it knows, the oldest of a sample
// of 64, and lists where they are gone. Some of these stay, are the oldest, and are so many that
// every sample has some.
func newRecognized(ctx context.Context, t *testing.T, c *cluster.Cluster) *cluster.Objects {
	t.Helper()
	pods := newPods(ctx, t, c, 0)
	for i := range 20 {
		require.NoError(t, pods.Create(ctx, cluster.Name(trialNames+i)))
	}
	require.NoError(t, pods.Fill(ctx, trialNames/2))
	return pods
}

// isGoodWatch tells a watch that the server has begun to answer.
func (e exchange) isGoodWatch() bool { return e.isWatch() && e.status == http.StatusOK }

func (e exchange) isUnauthorized() bool { return e.status == http.StatusUnauthorized }

// count is, for each follower, how many of its exchanges were of the kind.
func (tr *trial) count(is func(exchange) bool) (counts []int) {
	for _, f := range tr.followers {
		counts = append(counts, f.seen.count(is))
	}
	return counts
}

// awaitMore returns when each follower had more exchanges of the kind than before.
func (tr *trial) awaitMore(ctx context.Context, t *testing.T, before []int, is func(exchange) bool) {
	t.Helper()
	for i, f := range tr.followers {
		err := f.seen.await(ctx, f.name+" has asked again", func() bool { return f.seen.countLocked(is) > before[i] })
		require.NoError(t, err)
	}
}

// awaitSynced returns when each follower is synced. None of them is restless.
func (tr *trial) awaitSynced(ctx context.Context, t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, quietPoll, quietTimeout, true, func(context.Context) (bool, error) {
		for _, f := range tr.followers {
			if i, _ := f.now(); i == nil || !i.HasSynced() {
				return false, nil
			}
		}
		return true, nil
	})
	require.NoError(t, err, "all are synced")
}

// account is a service account that may do anything, and the file with its token.
type account struct {
	config *rest.Config // with no token
	client kubernetes.Interface
	name   string
	path   string
	count  int
}

// accountNamespace is there in every cluster.
const accountNamespace = metav1.NamespaceDefault

func newAccount(ctx context.Context, t *testing.T, c *cluster.Cluster) *account {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	a := &account{config: c.Config(), client: client, path: filepath.Join(t.TempDir(), "token")}
	a.config.BearerToken = ""
	created, err := client.CoreV1().ServiceAccounts(accountNamespace).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	a.name = created.Name
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: a.name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return a
}

// token is one that ends with the secret that it is bound to.
type token struct {
	text   string
	secret string
}

// renew puts a new token in the file.
func (a *account) renew(ctx context.Context, t *testing.T) token {
	t.Helper()
	a.count++
	secret, err := a.client.CoreV1().Secrets(accountNamespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", a.name, a.count)},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	answer, err := a.client.CoreV1().ServiceAccounts(accountNamespace).CreateToken(ctx, a.name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID,
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	issued := token{text: answer.Status.Token, secret: secret.Name}
	a.await(ctx, t, issued, func(err error) bool { return err == nil })
	aside := a.path + ".new"
	require.NoError(t, os.WriteFile(aside, []byte(issued.text), 0o600))
	require.NoError(t, os.Rename(aside, a.path))
	return issued
}

// revoke returns when the server refuses the token: it remembers for ten seconds that
// it was good.
func (a *account) revoke(ctx context.Context, t *testing.T, revoked token) {
	t.Helper()
	require.NoError(t, a.client.CoreV1().Secrets(accountNamespace).Delete(ctx, revoked.secret, metav1.DeleteOptions{}))
	a.await(ctx, t, revoked, apierrors.IsUnauthorized)
}

// await returns when the answer to a request with the token is as wanted.
func (a *account) await(ctx context.Context, t *testing.T, of token, wanted func(error) bool) {
	t.Helper()
	config := rest.CopyConfig(a.config)
	config.BearerToken = of.text
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = client.CoreV1().Namespaces().Get(ctx, accountNamespace, metav1.GetOptions{})
		return wanted(last), nil
	})
	require.NoError(t, err, "last answer to the token: %v", last)
}
