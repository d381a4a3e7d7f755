package typed_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
)

// Two servers in one registry need names, or the objects of one would be taken for those of the
// other.
func TestTwoServersInOneRegistryNeedNames(t *testing.T) {
	byConfig := func(host string) func(...typed.SharedInformerOption) *typed.Factory {
		return func(options ...typed.SharedInformerOption) *typed.Factory {
			return typed.New(nil, 0, append(options, typed.WithRESTConfig(&rest.Config{Host: host}))...)
		}
	}
	byClient := func(host string) func(...typed.SharedInformerOption) *typed.Factory {
		return func(options ...typed.SharedInformerOption) *typed.Factory {
			client, err := kubernetes.NewForConfig(&rest.Config{Host: host})
			require.NoError(t, err)
			return typed.New(client, 0, options...)
		}
	}
	for name, make := range map[string]func(host string) func(...typed.SharedInformerOption) *typed.Factory{"config": byConfig, "client": byClient} {
		t.Run(name, func(t *testing.T) {
			registry := factory.New()
			with := typed.WithFactory(registry)
			one := byConfig("https://one:6443/prefix")(with)
			other := make("https://other:6443/prefix")
			const conflict = "typed: WithFactory without WithCluster: the cluster without a name has the server https://one:6443/prefix, " +
				"not https://other:6443/prefix: give each cluster a name"
			require.PanicsWithValue(t, conflict, func() { other(with) })
			for _, path := range []string{"https://one:6443", "https://one:6443/another", "http://one:6443/prefix", "https://one/prefix"} {
				require.Panics(t, func() { make(path)(with) }, path)
			}
			again := make("https://one:6443/prefix/")(with)
			other(with, typed.WithCluster("other")).Shutdown()
			make("https://third")(with, typed.WithCluster("other")).Shutdown()
			other().Shutdown()
			typed.New(fake.NewClientset(), 0, with).Shutdown()

			one.Shutdown()
			one.Shutdown()
			require.PanicsWithValue(t, conflict, func() { other(with) }, "the second factory of the first server is not shut down")
			again.Shutdown()
			other(with).Shutdown()
		})
	}
}
