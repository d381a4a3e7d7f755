package registry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/metrics"
	"github.com/rvinformer/informer/registry"
	"github.com/rvinformer/informer/statuspage"
)

// state is an informer that is as it says.
type state informer.Status

func (s *state) Status() informer.Status { return informer.Status(*s) }

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// newFactory returns a factory with an informer of this library and one of client-go.
func newFactory(t *testing.T) *factory.Factory {
	f := factory.New()
	t.Cleanup(f.Shutdown)
	lease, err := f.AcquireResourceVersion(widgets, factory.InformerOptions{Cluster: "east", Namespace: "shop"}, func() informer.ResourceVersionInformer {
		return informer.NewResourceVersionInformer("widgets", informer.InformerConfig{ListerWatcher: &cache.ListWatch{}, Handler: informer.ResourceEventHandlerFuncs{}})
	})
	require.NoError(t, err)
	t.Cleanup(func() { lease.Release() })
	f.InformerFor(widgets, factory.InformerOptions{Cluster: "west"}, func() cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(&cache.ListWatch{}, nil, 0, nil)
	})
	return f
}

// clusters are the clusters of all informers.
func clusters(r *registry.Registry) (all []string) {
	for _, i := range r.Informers() {
		all = append(all, i.Labels().Cluster)
	}
	return all
}

func TestInformersAreInTheOrderOfAdd(t *testing.T) {
	var r registry.Registry // the zero value is empty
	require.Empty(t, r.Informers())
	removeA := r.Add(registry.Labels{Cluster: "a"}, &state{Objects: 1})
	removeFactory := r.AddFactory(newFactory(t))
	r.Add(registry.Labels{Cluster: "b"}, &state{Objects: 2})
	r.Add(registry.Labels{Cluster: "b"}, &state{Objects: 3})

	all := r.Informers()
	require.Len(t, all, 5)
	require.Equal(t, "a", all[0].Labels().Cluster)
	require.ElementsMatch(t, []string{"east", "west"}, []string{all[1].Labels().Cluster, all[2].Labels().Cluster})
	for at, objects := range map[int]int{0: 1, 3: 2, 4: 3} {
		require.Equal(t, objects, all[at].Source.Status().Objects)
		require.False(t, all[at].Foreign)
	}

	removeA()
	removeA()
	require.ElementsMatch(t, []string{"east", "west", "b", "b"}, clusters(&r))
	removeFactory()
	require.Equal(t, []string{"b", "b"}, clusters(&r))
}

func TestInformersOfAFactoryHaveItsMembers(t *testing.T) {
	r := registry.New()
	r.AddFactory(newFactory(t))
	for _, i := range r.Informers() {
		m := i.Member.(*factory.Member)
		s := i.Source.Status()
		require.Equal(t, m.Key().Labels(), i.Labels())
		require.Equal(t, m.Key().Cluster == "west", i.Foreign, "one is client-go's")
		require.Equal(t, m.Status().Condition, s.Condition)
		require.Equal(t, informer.ReasonNotStarted, s.Condition.Reason)
	}
}

func TestDoneTellsInformersApart(t *testing.T) {
	r := registry.New()
	s := &state{}
	remove := r.Add(registry.Labels{}, s)
	r.Add(registry.Labels{}, s)
	first, second := r.Informers()[0].Done(), r.Informers()[1].Done()
	require.NotEqual(t, first, second)
	require.Equal(t, first, r.Informers()[0].Done())
	remove()
	<-first
	require.Equal(t, second, r.Informers()[0].Done())
	select {
	case <-second:
		t.Error("the other one is there")
	default:
	}
}

func TestRegistryHasWhatAnotherOneHas(t *testing.T) {
	inner, outer := registry.New(), registry.New()
	remove := outer.AddFactory(inner)
	inner.AddFactory(newFactory(t))
	budget := informer.NewBudget(7)
	removeBudget := inner.AddBudget("slow", budget)
	outer.AddBudget("fast", informer.NewBudget(8))
	require.ElementsMatch(t, []string{"east", "west"}, clusters(outer))
	require.Len(t, outer.Budgets(), 2)
	require.Equal(t, registry.Budget{Name: "slow", Budget: budget}, outer.Budgets()[0])

	removeBudget()
	require.Len(t, outer.Budgets(), 1)
	require.Len(t, outer.Informers(), 2)
	remove()
	require.Empty(t, outer.Informers())
	require.Len(t, inner.Informers(), 2)
}

func TestNothingToAddIsRefused(t *testing.T) {
	r := registry.New()
	require.PanicsWithValue(t, "registry: Add of no informer", func() { r.Add(registry.Labels{}, nil) })
	require.PanicsWithValue(t, "registry: Add of no informer", func() { r.Add(registry.Labels{}, (*state)(nil)) })
	require.PanicsWithValue(t, "registry: AddBudget of no budget", func() { r.AddBudget("none", nil) })
	for _, f := range []registry.Factory{nil, (*factory.Factory)(nil), (*registry.Registry)(nil), r} {
		require.PanicsWithValue(t, "registry: AddFactory of no factory, or of the registry itself", func() { r.AddFactory(f) })
	}
	require.Panics(t, func() { metrics.Of(nil) })
	require.Panics(t, func() { statuspage.Of(nil) })
}

// The page and the metrics show what their registry is told once. What is added to one of the two
// is there alone.
func TestPageAndMetricsShowOneRegistry(t *testing.T) {
	r := registry.New()
	page, collector := statuspage.Of(r), metrics.Of(r)
	removes := []func(){
		r.AddFactory(newFactory(t)), r.Add(registry.Labels{Cluster: "one"}, &state{}),
		page.Add(statuspage.Labels{Cluster: "two"}, &state{}), collector.Add(metrics.Labels{Cluster: "three"}, &state{}),
	}
	r.AddBudget("slow", informer.NewBudget(10))
	collector.AddBudget("slow", informer.NewBudget(5))

	rows, text := shown(t, page), shown(t, collector.Handler())
	for cluster, on := range map[string]struct{ page, metrics int }{"east": {1, 1}, "west": {1, 1}, "one": {1, 1}, "two": {1, 0}, "three": {0, 1}} {
		require.Equal(t, on.page, strings.Count(rows, `"cluster": "`+cluster+`"`), rows)
		require.Equal(t, on.metrics, strings.Count(text, `rvinformer_synced{cluster="`+cluster+`"`), text)
	}
	require.Len(t, r.Informers(), 3)
	require.Contains(t, rows, "namespace shop")
	require.NotContains(t, text, "shop", "metrics have no namespaces")
	require.Contains(t, text, `rvinformer_budget_limit_bytes{budget="slow"} 15`)
	require.Contains(t, text, `rvinformer_budget_limit_bytes{budget="default"} 1.6777216e+07`)

	for _, remove := range removes {
		remove()
	}
	require.NotContains(t, shown(t, collector.Handler()), "cluster=")
	require.NotContains(t, shown(t, page), `"cluster":`)
}

// shown is what a handler shows, with the rows of the page in JSON.
func shown(t *testing.T, h http.Handler) string {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept", "application/json")
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	return w.Body.String()
}

func TestRegistryIsReadWhileItChanges(t *testing.T) {
	r, inner := registry.New(), registry.New()
	r.AddFactory(inner)
	r.AddFactory(newFactory(t))
	var changes sync.WaitGroup
	for range 4 {
		changes.Go(func() {
			for range 200 {
				remove := inner.Add(registry.Labels{}, &state{})
				removeBudget := r.AddBudget("slow", informer.NewBudget(1))
				r.Informers()
				r.Budgets()
				removeBudget()
				remove()
			}
		})
	}
	changes.Wait()
	require.Len(t, r.Informers(), 2)
}
