package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// PodMetricsResource names what metrics-server serves of pods.
var PodMetricsResource = schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"}

const metricsName = "metrics-server"

// BuildMetricsServer compiles metrics-server, and returns the binaries with it. It is the same for all
// versions of Kubernetes.
func BuildMetricsServer(ctx context.Context, b Binaries) (_ Binaries, err error) {
	b.MetricsServer, err = buildServer(ctx, metricsName)
	return b, err
}

// StartMetricsServer starts metrics-server, and returns when the API server passes requests on to it. It
// finds the metrics of pods at a Kubelet.
func (c *Cluster) StartMetricsServer(ctx context.Context) error {
	return c.startBehind(ctx, &c.metrics, PodMetricsResource, c.options.Binaries.MetricsServer,
		"--kubelet-insecure-tls",
		"--kubelet-use-node-status-port",
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-request-timeout=5s",
		"--metric-resolution=10s", // the shortest that it takes
	)
}

// Kubelet stands for a node and its kubelet: it says how much the pods of a namespace take.
type Kubelet struct {
	server *httptest.Server
	pods   *Objects
}

// StartKubelet makes a node whose kubelet runs the pods of a namespace, those that are there by then, and
// tells of them. The caller must Close it.
func (c *Cluster) StartKubelet(ctx context.Context, name string, pods *Objects) (*Kubelet, error) {
	k := &Kubelet{pods: pods}
	k.server = httptest.NewTLSServer(k)
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		k.Close()
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node, err = client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err == nil {
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: loopback}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(k.server.Listener.Addr().(*net.TCPAddr).Port)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		k.Close()
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	if err := k.run(ctx, client); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// run says of all pods that they run: metrics-server tells of no others.
func (k *Kubelet) run(ctx context.Context, client kubernetes.Interface) error {
	pods, err := k.pods.Versions(ctx)
	if err != nil {
		return err
	}
	const running = `{"status":{"phase":"Running"}}`
	for key := range pods {
		_, err := client.CoreV1().Pods(k.pods.Namespace).Patch(ctx, nameOf(key), types.MergePatchType, []byte(running), metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("running pod %s: %w", key, err)
		}
	}
	return nil
}

// nameOf is the second part of "namespace/name".
func nameOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// Close ends the kubelet. The node stays.
func (k *Kubelet) Close() { k.server.Close() }

// ServeHTTP answers /metrics/resource, which metrics-server reads.
func (k *Kubelet) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	pods, err := k.pods.Versions(req.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	now := time.Now()
	// CPU is what a counter has grown by since the last time.
	seconds := float64(now.UnixMilli()%(24*3600*1000)) / 10_000
	line := func(name, labels string, value float64) {
		_, _ = fmt.Fprintf(w, "%s%s %f %d\n", name, labels, value, now.UnixMilli())
	}
	line("node_cpu_usage_seconds_total", "", seconds)
	line("node_memory_working_set_bytes", "", 1<<30)
	for key := range pods {
		labels := fmt.Sprintf("{container=%q,namespace=%q,pod=%q}", "main", k.pods.Namespace, nameOf(key))
		// What began a while ago has two points to compute with at once.
		_, _ = fmt.Fprintf(w, "container_start_time_seconds%s %d\n", labels, now.Add(-time.Hour).Unix())
		line("container_cpu_usage_seconds_total", labels, seconds)
		line("container_memory_working_set_bytes", labels, 1<<20)
	}
}
