package crdtypes_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	rollouts "github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	acme "github.com/cert-manager/cert-manager/pkg/apis/acme/v1"
	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	helm "github.com/fluxcd/helm-controller/api/v2"
	kustomize "github.com/fluxcd/kustomize-controller/api/v1"
	source "github.com/fluxcd/source-controller/api/v1"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	velero "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	istio "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurity "istio.io/client-go/pkg/apis/security/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubeadm "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterapi "sigs.k8s.io/cluster-api/api/core/v1beta2"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/randfill"

	"github.com/rvinformer/informer/internal/leaf/typedjson/trial"
)

// kinds are the types of the projects, but for Istio's, in the same order each time.
func kinds(t *testing.T) (types []reflect.Type) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		acme.AddToScheme, certmanager.AddToScheme, clusterapi.AddToScheme, kubeadm.AddToScheme, gateway.Install, helm.AddToScheme, kueue.AddToScheme,
		kustomize.AddToScheme, monitoring.AddToScheme, rollouts.AddToScheme, source.AddToScheme, velero.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	for _, of := range scheme.AllKnownTypes() {
		if !strings.HasPrefix(of.PkgPath(), "k8s.io/") {
			types = append(types, of)
		}
	}
	name := func(of reflect.Type) string { return of.PkgPath() + "." + of.Name() }
	slices.SortFunc(types, func(a, b reflect.Type) int { return strings.Compare(name(a), name(b)) })
	return slices.Compact(types)
}

// ownFuncs fill types whose random content is no JSON.
func ownFuncs(serializer.CodecFactory) []any {
	text := func(c randfill.Continue) []byte {
		return []byte([]string{`{"a":{"b":[1,"c"]}}`, `"a"`, `7`, `[]`}[c.Intn(4)])
	}
	return []any{
		func(j *apiextensions.JSON, c randfill.Continue) { j.Raw = text(c) },
		func(j *json.RawMessage, c randfill.Continue) { *j = text(c) },
	}
}

func TestDecodesCustomResourcesAsApimachinery(t *testing.T) {
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	// Some types are so wide, or hold themselves so often, that an object must have an end.
	fill := randfill.New().RandSource(rand.NewSource(1)).NilChance(.6).NumElements(1, 1).MaxDepth(12).
		Funcs(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, ownFuncs)(codecs)...)
	types := kinds(t)
	require.Greater(t, len(types), 100)
	trial.Types(t, types, func(obj any) { fill.Fill(obj) }, 1, 9)
}

// Istio's types decode themselves, as protobuf does it in JSON, and cannot be filled at random.
func TestDecodesIstioAsApimachinery(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for text, of := range map[string]reflect.Type{
		`{"metadata":{"name":"a"},"spec":{"hosts":["a.example.com"],"http":[{"match":[{"uri":{"prefix":"/a"}}],"timeout":"5s","route":[{"destination":{"host":"a","port":{"number":80}},"weight":90}]}]},"status":{}}`: reflect.TypeFor[istio.VirtualService](),
		`{"metadata":{"name":"a"},"spec":{"host":"a","trafficPolicy":{"loadBalancer":{"simple":"LEAST_REQUEST"},"outlierDetection":{"interval":"30s"}},"subsets":[{"name":"v1","labels":{"version":"v1"}}]}}`:          reflect.TypeFor[istio.DestinationRule](),
		`{"metadata":{"name":"a"},"spec":{"action":"DENY","rules":[{"from":[{"source":{"principals":["a"]}}],"when":[{"key":"k","values":["v"]}]}]}}`:                                                                  reflect.TypeFor[istiosecurity.AuthorizationPolicy](),
	} {
		require.True(t, trial.RequireSame(t, of, []byte(text)))
		for range 300 {
			trial.RequireSame(t, of, trial.Mutated(r, []byte(text), 15))
		}
	}
}
