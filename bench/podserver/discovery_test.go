package podserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
)

func TestDiscoveryShowsResources(t *testing.T) {
	s, err := Start(Options{Resources: []string{"secrets", "kind00s"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	groups, lists, err := discovery.NewDiscoveryClientForConfigOrDie(s.Config()).ServerGroupsAndResources()
	require.NoError(t, err)
	require.Len(t, groups, 1)
	require.Len(t, lists, 1)
	require.Equal(t, "v1", lists[0].GroupVersion)
	var names []string
	for _, r := range lists[0].APIResources {
		names = append(names, r.Name)
		require.Contains(t, r.Verbs, "watch")
	}
	require.ElementsMatch(t, []string{"pods", "secrets", "kind00s"}, names)
}
