package fleet_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

// guarded is a server that wants a token.
func guarded(t *testing.T, valid *atomic.Value) *informertest.Server {
	return serve(t, informertest.Options{Resources: withDefinitions(), Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+valid.Load().(string) {
				http.Error(rw, "", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(rw, r)
		})
	}})
}

func withToken(s *informertest.Server, token string) *rest.Config {
	config := s.Config()
	config.BearerToken = token
	return config
}

func kubeSystem(t *testing.T, s *informertest.Server) {
	_, err := s.Create(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
	require.NoError(t, err)
}

// sets counts the requests that read a set, and not one object or the server's state.
func sets(s *informertest.Server) (lists int) {
	for _, r := range s.Requests() {
		if r.Options.SendInitialEvents != nil || r.Verb == "list" && r.Options.Limit != 1 {
			lists++
		}
	}
	return lists
}

// watches counts requests for watches. Discovery may ask at any time.
func watches(s *informertest.Server) (watches int) {
	for _, r := range s.Requests() {
		if r.Verb == "watch" {
			watches++
		}
	}
	return watches
}

// A token expires every 15 minutes, and the next one comes by Update: no watch is ended for that,
// nothing is listed, and nothing is missed.
func TestUpdateOfATokenListsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var valid atomic.Value
		valid.Store("0")
		east := guarded(t, &valid)
		create(t, east, pods, "a", "b")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{})
		require.NoError(t, f.Add("east", withToken(east, "0")))
		start(t, f.Run)
		require.NoError(t, f.WaitForSync(t.Context()))
		time.Sleep(time.Minute)
		east.ResetRequests()
		for n := range 8 {
			token := string(rune('1' + n))
			valid.Store(token)
			if n%2 == 1 {
				time.Sleep(3 * time.Minute) // too late
			}
			require.NoError(t, f.Update("east", withToken(east, token)))
			create(t, east, pods, "n"+token)
			time.Sleep(time.Second)
			if n == 0 {
				require.Zero(t, watches(east), "they go on")
			}
			time.Sleep(14 * time.Minute)
			m.requireRight(t, "east", east, pods)
			now, _ := f.Cluster("east")
			require.NoError(t, now.LastError)
		}
		require.Zero(t, sets(east))
	})
}

// The cluster is reached at another address: watches that are open go on, and what follows them goes
// on at the new one.
func TestUpdateOfTheAddressListsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var hosts atomic.Value
		east := serve(t, informertest.Options{Resources: append(withDefinitions(), informertest.Resource{
			GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace",
		}), Wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				hosts.Store(r.Host)
				next.ServeHTTP(rw, r)
			})
		}})
		kubeSystem(t, east)
		create(t, east, pods, "a", "b")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{})
		follow(t, f, "east", east)
		time.Sleep(time.Minute)
		east.ResetRequests()
		config := east.Config()
		config.Host = "http://elsewhere"
		require.NoError(t, f.Update("east", config))
		time.Sleep(time.Second)
		require.Zero(t, watches(east))
		now, _ := f.Cluster("east")
		require.Equal(t, "http://elsewhere", now.Server)
		create(t, east, pods, "c")
		time.Sleep(time.Hour)
		require.Equal(t, "elsewhere", hosts.Load())
		require.NoError(t, east.Delete(pods, "default", "a"))
		time.Sleep(time.Second)
		m.requireRight(t, "east", east, pods)
		require.Zero(t, sets(east))
	})
}

// Another cluster at the new address is listed, and told as it is.
func TestUpdateToAnotherCluster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		namespaces := informertest.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}
		east := serve(t, informertest.Options{Resources: append(withDefinitions(), namespaces)})
		west := serve(t, informertest.Options{Resources: append(withDefinitions(), namespaces)})
		for _, s := range []*informertest.Server{east, west} {
			kubeSystem(t, s)
		}
		create(t, east, pods, "a", "b")
		create(t, west, pods, "b", "c", "d", "e", "f")
		m := newMirror()
		f := newFleet(t, m, fleet.Config{})
		follow(t, f, "east", east)
		config := west.Config()
		config.Host = "http://elsewhere"
		require.NoError(t, f.Update("east", config))
		time.Sleep(time.Hour)
		m.requireRight(t, "east", west, pods)
	})
}

func TestUpdateRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{Resources: small()})
		m := newMirror()
		shared := factory.New()
		f := newFleet(t, m, fleet.Config{Factory: shared})
		follow(t, f, "east", east)
		before, _ := f.Cluster("east")
		require.ErrorIs(t, f.Update("west", east.Config()), fleet.ErrNoCluster)
		require.Error(t, f.Update("east", nil))
		wrong := east.Config()
		wrong.Host = "http://a b"
		require.Error(t, f.Update("east", wrong))
		release, err := shared.UseServer("east", before.Server)
		require.NoError(t, err)
		other := east.Config()
		other.Host = "http://elsewhere"
		require.ErrorAs(t, f.Update("east", other), new(*factory.ServerConflictError))
		now, _ := f.Cluster("east")
		require.Equal(t, before.Server, now.Server)
		release()
		require.NoError(t, f.Update("east", other))
		<-f.Remove("east")
		require.ErrorIs(t, f.Update("east", other), fleet.ErrNoCluster)
	})
}
