package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/informertest"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// The program of docs/fleet.md mirrors two simulated clusters without their Secrets. When it starts
// again, it removes what was deleted meanwhile, without a list.
func TestFleetMirrorsClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := informertest.NewServer(informertest.Options{InMemory: true})
		defer east.Close()
		west := informertest.NewServer(informertest.Options{InMemory: true})
		defer west.Close()
		clusters := map[string]*informertest.Server{"east": east, "west": west}
		dir := t.TempDir()
		create(t, east, configMaps, &corev1.ConfigMap{ObjectMeta: named("stays")})
		create(t, east, configMaps, &corev1.ConfigMap{ObjectMeta: named("goes")})
		create(t, east, secrets, &corev1.Secret{ObjectMeta: named("token")})
		create(t, west, configMaps, &corev1.ConfigMap{ObjectMeta: named("other")})

		run(t, dir, clusters)
		require.Equal(t, []string{"goes.json", "stays.json"}, files(t, dir, "east/configmaps/default"))
		require.Equal(t, []string{"other.json"}, files(t, dir, "west/configmaps/default"))
		require.NoDirExists(t, filepath.Join(dir, "east/secrets"))

		require.NoError(t, east.Delete(configMaps, "default", "goes"))
		east.ResetRequests()
		run(t, dir, clusters)
		require.Equal(t, []string{"stays.json"}, files(t, dir, "east/configmaps/default"))
		for _, r := range east.Requests() {
			if r.GroupVersionResource == configMaps && r.Options.Limit != 1 { // a question for one object is no list
				require.Equal(t, "watch", r.Verb)
				require.Nil(t, r.Options.SendInitialEvents)
			}
		}
	})
}

// run follows the clusters for a minute of virtual time.
func run(t *testing.T, dir string, clusters map[string]*informertest.Server) {
	f, err := newFleet(dir)
	require.NoError(t, err)
	for name, cluster := range clusters {
		require.NoError(t, f.Add(name, cluster.Config()))
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	f.Run(ctx)
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func create(t *testing.T, server *informertest.Server, resource schema.GroupVersionResource, object runtime.Object) {
	_, err := server.Create(resource, object)
	require.NoError(t, err)
}

// files returns the names of the files in a directory below dir, in their order.
func files(t *testing.T, dir, below string) (names []string) {
	entries, err := os.ReadDir(filepath.Join(dir, below))
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
