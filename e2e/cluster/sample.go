package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FlunderResource names what the sample server serves.
var FlunderResource = schema.GroupVersionResource{Group: "wardle.example.com", Version: "v1alpha1", Resource: "flunders"}

const sampleName = "sample-apiserver"

// BuildSampleServer compiles the sample server, of the version of Kubernetes that the environment asks
// for, and returns the binaries with it.
func BuildSampleServer(ctx context.Context, b Binaries) (_ Binaries, err error) {
	b.SampleAPIServer, err = buildServer(ctx, sampleName)
	return b, err
}

// StartSampleServer starts the sample server, again on its port if it ran before, and returns when the
// API server, which must run, passes requests on to it. Its objects are in the same etcd.
func (c *Cluster) StartSampleServer(ctx context.Context) error {
	return c.startBehind(ctx, &c.sample, FlunderResource, c.options.Binaries.SampleAPIServer,
		"--etcd-servers="+c.etcdURL,
		"--etcd-prefix=/registry", // keys are like those of custom resources
		"--etcd-compaction-interval=0",
		"--enable-priority-and-fairness=false",
	)
}

// KillSampleServer ends the sample server with SIGKILL, and returns when the process is gone.
func (c *Cluster) KillSampleServer() error { return c.sample.kill() }

// Flunders returns the flunders of a namespace that exists.
func (c *Cluster) Flunders(namespace string) (*Objects, error) {
	return c.objects(namespace, FlunderResource, func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": FlunderResource.GroupVersion().String(),
			"kind":       "Flunder",
			"metadata":   map[string]any{"name": name, "labels": map[string]any{"step": "created"}},
			"spec":       map[string]any{"reference": name},
		}}
	})
}
