package cluster

import (
	"context"
	"fmt"
	"regexp"

	"k8s.io/client-go/kubernetes"
)

// feature is a line of the API server's metrics that tells of a feature gate.
var feature = regexp.MustCompile(`(?m)^kubernetes_feature_enabled\{name="(\w+)",.*\} ([01])$`)

// Features are the feature gates that the API server knows, and whether they are on.
func (c *Cluster) Features(ctx context.Context) (map[string]bool, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, fmt.Errorf("features: %w", err)
	}
	text, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("features: %w", err)
	}
	on := map[string]bool{}
	for _, m := range feature.FindAllSubmatch(text, -1) {
		on[string(m[1])] = string(m[2]) == "1"
	}
	return on, nil
}
