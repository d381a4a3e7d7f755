package main

import (
	"testing"

	"github.com/rvinformer/informer/informertest"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
)

func TestDiscoverAll(t *testing.T) {
	client := discoverTestCluster(t)
	what, err := discoverAll(t.Context(), client)
	require.NoError(t, err)
	require.True(t, what.complete)
	require.NoError(t, what.missed())
	require.Equal(t, []string{"configmaps", "deployments.apps", "namespaces", "nodes", "pods", "secrets", "widgets.example.com"}, what.names())
}

// A server that shows nothing is not believed: the rows of all its resources would be dropped.
func TestDiscoverNothing(t *testing.T) {
	server := informertest.NewServer(informertest.Options{Resources: []informertest.Resource{}})
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(server.Config())
	require.NoError(t, err)
	_, err = discoverAll(t.Context(), client)
	require.EqualError(t, err, "discovery shows nothing that can be listed and watched")
}

func TestDiscoverNamed(t *testing.T) {
	client := discoverTestCluster(t)
	for _, tt := range []struct {
		names   []string
		want    []string
		missing string
	}{
		{[]string{"pods"}, []string{"pods"}, ""},
		{[]string{"pod", "Pods"}, []string{"pods"}, ""},
		{[]string{"deployments"}, []string{"deployments.apps"}, ""},
		{[]string{"widgets.v1.example.com", "deployments.apps"}, []string{"deployments.apps", "widgets.example.com"}, ""},
		{[]string{"widgets.example.com"}, []string{"widgets.example.com"}, ""},
		{[]string{"gadgets", "pods"}, []string{"pods"}, "--resources gadgets: "},
		{[]string{"widgets.v2.example.com"}, nil, "--resources widgets.v2.example.com: "},
	} {
		what, err := discoverNamed(t.Context(), client, tt.names)
		require.NoError(t, err)
		require.Equal(t, tt.want, what.names(), tt.names)
		if tt.missing == "" {
			require.NoError(t, what.missed())
		} else {
			require.ErrorContains(t, what.missed(), tt.missing)
		}
	}
}

// Two versions of a resource show the same objects.
func TestFoundTwice(t *testing.T) {
	var what found
	what.add(widgets)
	what.add(widgets)
	require.NoError(t, what.missed())
	old := widgets
	old.Version = "v1beta1"
	what.add(old)
	require.Equal(t, []string{"widgets.example.com"}, what.names())
	require.ErrorContains(t, what.missed(), "is the same as")
}

func discoverTestCluster(t *testing.T) discovery.DiscoveryInterfaceWithContext {
	server := informertest.NewServer(informertest.Options{})
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(server.Config())
	require.NoError(t, err)
	return client
}

func (f found) names() (names []string) {
	for _, r := range f.resources {
		names = append(names, r.GroupResource().String())
	}
	return names
}
