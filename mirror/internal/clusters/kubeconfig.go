// Package clusters finds the clusters to mirror: in a kubeconfig, or in a folder of kubeconfigs that
// come and go.
package clusters

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Endpoint is a cluster's name in the database, and how to reach it.
type Endpoint struct {
	Name   string
	Client *rest.Config
}

// InKubeconfig reads contexts from a kubeconfig; none means the current one. An empty path means
// kubectl's default.
func InKubeconfig(path string, contexts []string) ([]Endpoint, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if len(contexts) == 0 {
		if config.CurrentContext == "" {
			return nil, errors.New("kubeconfig: no current context; name one with --context, or try --demo")
		}
		contexts = []string{config.CurrentContext}
	}
	var endpoints []Endpoint
	for i, name := range contexts {
		if slices.Contains(contexts[:i], name) {
			return nil, fmt.Errorf("--context %s: named twice", name)
		}
		client, err := clientcmd.NewNonInteractiveClientConfig(*config, name, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: context %s: %w", name, err)
		}
		endpoints = append(endpoints, Endpoint{name, client})
	}
	return endpoints, nil
}
