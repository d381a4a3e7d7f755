package samples

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// firstWords begin the names of the owners in a namespace, in this order.
var firstWords = [OwnersPerNamespace]string{
	"account", "address", "audit", "basket", "billing", "booking", "catalog", "checkout", "courier", "customer",
	"device", "discount", "document", "email", "export", "feature", "fraud", "gateway", "identity", "import",
	"inventory", "invoice", "ledger", "loyalty", "media", "metrics", "notification", "offer", "order", "payment",
	"pricing", "product", "profile", "rating", "refund", "search", "session", "shipping", "stock", "subscription",
}

var (
	secondWords = []string{"api", "worker", "frontend", "backend", "consumer", "sync", "scheduler", "proxy", "store", "events", "graphql", "reports"}
	sidecars    = []string{"istio-proxy", "fluent-bit", "otel-agent", "vault-agent", "cloudsql-proxy", "config-reloader"}
	settings    = []string{
		"DATABASE_URL", "REDIS_ADDR", "KAFKA_BROKERS", "LOG_LEVEL", "OTEL_ENDPOINT", "MAX_CONNECTIONS", "REQUEST_TIMEOUT", "FEATURE_FLAGS_KEY",
		"S3_BUCKET", "AWS_REGION", "SENTRY_DSN", "PUBLIC_URL", "CACHE_TTL_SECONDS", "JWT_ISSUER", "JWT_AUDIENCE", "WORKER_THREADS",
		"QUEUE_NAME", "RETRY_LIMIT", "METRICS_PORT", "ENABLE_TRACING", "BUILD_ID", "GIT_COMMIT", "SMTP_HOST", "TENANT_ID",
		"OAUTH_CLIENT_ID", "SEARCH_ENDPOINT", "RATE_LIMIT", "SHARD_KEY", "CONFIG_CHECKSUM", "JAVA_OPTS",
	}
	tiers = []string{"frontend", "backend", "data", "batch"}
)

// deployment is what the pods of one replica set have in common.
type deployment struct {
	name, hash, team, tier, release string
	uid                             types.UID
	created                         time.Time
	containers                      []corev1.Container
	digests                         []string // of the containers' images
	salt                            int
}

func (c Cluster) deployment(index int) *deployment {
	r := c.random(deploymentTopic, index)
	d := &deployment{
		name:    firstWords[index%OwnersPerNamespace] + "-" + r.of(secondWords),
		hash:    r.text(safe, 9+r.IntN(2)),
		team:    fmt.Sprintf("team-%02d", r.IntN(Teams)),
		tier:    r.of(tiers),
		release: fmt.Sprintf("%d.%d.%d", r.IntN(5), r.IntN(40), r.IntN(20)),
		uid:     r.uid(),
		created: epoch.Add(time.Duration(r.IntN(90*24*3600)) * time.Second),
		salt:    r.IntN(1 << 20),
	}
	for k := range 1 + index%3 {
		name, image, digest := d.name, fmt.Sprintf("registry.example.com/%s/%s:v%s", d.team, d.name, d.release), r.hex(32)
		if k > 0 {
			which := (index + k) % len(sidecars) // the same image wherever it runs
			shared := c.random(catalogTopic, which)
			name = sidecars[which]
			image, digest = fmt.Sprintf("registry.example.com/platform/%s:v1.%d.%d", name, shared.IntN(30), shared.IntN(10)), shared.hex(32)
		}
		d.containers = append(d.containers, container(r, k, name, image))
		d.digests = append(d.digests, digest)
	}
	return d
}

func container(r source, k int, name, image string) corev1.Container {
	most := [2]int{18, 6} // variables of a main container, and of a sidecar
	cpu, memory := int64(50*(1+r.IntN(20))), int64(64*(1+r.IntN(32)))
	amount := func(cpu, memory int64) corev1.ResourceList {
		return corev1.ResourceList{"cpu": *resource.NewMilliQuantity(cpu, resource.DecimalSI), "memory": *resource.NewQuantity(memory<<20, resource.BinarySI)}
	}
	return corev1.Container{
		Name: name, Image: image, Env: variables(r, 3+r.IntN(most[min(k, 1)]-2)),
		Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: int32(8080 + k), Protocol: "TCP"}},
		Resources: corev1.ResourceRequirements{Limits: amount(2*cpu, memory), Requests: amount(cpu, memory)},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/" + name, ReadOnly: true},
			{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent",
	}
}

// variables are n settings with different names.
func variables(r source, n int) []corev1.EnvVar {
	var all []corev1.EnvVar
	for _, k := range r.Perm(len(settings))[:n] {
		all = append(all, corev1.EnvVar{Name: settings[k], Value: value(r)})
	}
	return all
}

// value is that of a setting: an address, a token, a number or a word.
func value(r source) string {
	switch r.IntN(8) {
	case 0, 1:
		return "http://" + r.of(firstWords[:]) + ".svc.cluster.local:8080/"
	case 2, 3:
		return r.hex(2 + r.IntN(4))
	case 4:
		return r.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", 6+r.IntN(5))
	case 5, 6:
		return strconv.Itoa(r.IntN(10_000))
	default:
		return r.of(tiers) + "," + r.of(firstWords[:])
	}
}
