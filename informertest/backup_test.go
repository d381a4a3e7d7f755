package informertest_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/rvinformer/informer/informertest"
)

// What a server cannot do it refuses at once, and goes on as it was.
func TestMisuseChangesNothing(t *testing.T) {
	s, other := five(t), five(t)
	before, err := s.List(configMaps, "")
	require.NoError(t, err)
	backup := s.Backup()
	for want, misuse := range map[string]func(){
		"informertest: Restore without a Backup":                         func() { s.Restore(nil) },
		"informertest: Restore with a Backup that is not of this Server": func() { s.Restore(other.Backup()) },
		"informertest: Observe without a function":                       func() { s.Observe(nil) },
	} {
		w := follow(t, s, configMapsPath, "resourceVersion", "6")
		require.PanicsWithValue(t, want, misuse)
		after, err := s.List(configMaps, "")
		require.NoError(t, err)
		require.Equal(t, before, after)
		create(t, s, configMap("z", "1", "x"))
		w.want("ADDED 1 7")
		s.Restore(backup)
	}
	require.PanicsWithValue(t, "informertest: Restore with a Backup that is not of this Server", func() { s.Restore(&informertest.Backup{}) })
}

func TestRestore(t *testing.T) {
	s := five(t)
	before, err := s.List(configMaps, "")
	require.NoError(t, err)
	backup := s.Backup()
	gadgets := widgets.GroupVersion().WithResource("gadgets")
	for range 2 {
		w := follow(t, s, configMapsPath, "resourceVersion", "6")
		require.NoError(t, s.Delete(configMaps, "a", "1"))
		_, err = s.Update(configMaps, configMap("a", "2", "changed"))
		require.NoError(t, err)
		create(t, s, configMap("c", "1", "x"))
		_, err = s.Create(widgets, widget("a", "w", 1))
		require.NoError(t, err)
		s.AddResource(informertest.Resource{GroupVersionResource: gadgets, Kind: "Gadget", Custom: true})
		s.RemoveResource(nodes)
		w.want("DELETED 1 7", "MODIFIED 2 8", "ADDED 1 9")

		s.Restore(backup)
		w.wantEnd()
		require.Equal(t, "6", s.ResourceVersion())
		after, err := s.List(configMaps, "")
		require.NoError(t, err)
		require.Equal(t, before, after)
		for _, gvr := range []string{"widgets", "gadgets"} {
			none, err := s.List(widgets.GroupVersion().WithResource(gvr), "")
			require.NoError(t, err)
			require.Empty(t, none)
		}
		_, err = s.List(nodes, "")
		require.NoError(t, err)

		old := follow(t, s, configMapsPath, "resourceVersion", "5")
		old.want("ERROR Expired")
		future := follow(t, s, configMapsPath, "resourceVersion", "8")
		now := follow(t, s, configMapsPath, "resourceVersion", "6")
		create(t, s, configMap("d", "1", "x"), configMap("d", "2", "x"), configMap("d", "3", "x"))
		now.want("ADDED 1 7", "ADDED 2 8", "ADDED 3 9")
		future.want("ADDED 3 9")
		s.Restore(backup)
		future.wantEnd()
	}
}

func TestRemoveResource(t *testing.T) {
	s := five(t)
	_, err := s.Create(widgets, widget("a", "w1", 1)) // 7
	require.NoError(t, err)
	_, err = s.Create(widgets, widget("a", "w2", 1)) // 8
	require.NoError(t, err)
	w := follow(t, s, widgetsPath)
	w.want("ADDED w1 7", "ADDED w2 8")
	s.RemoveResource(widgets)
	w.want("DELETED w1 9", "DELETED w2 10")
	w.wantEnd()
	for _, path := range []string{widgetsPath, widgetsPath + "?watch=1", widgetsPath + "/w1", "/apis/example.com/v1"} {
		resp, err := httpClient(t, s).Get(s.URL() + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusNotFound, resp.StatusCode, path)
	}
	_, groups := ask(t, s, "/apis", nil, "")
	require.NotContains(t, groups, "example.com")
	_, err = s.Create(widgets, widget("a", "w1", 1))
	require.Error(t, err)
	s.RemoveResource(widgets)
	require.Equal(t, "10", s.ResourceVersion())

	s.AddResource(informertest.Resource{GroupVersionResource: widgets, Kind: "Widget", Namespaced: true, Custom: true})
	again := follow(t, s, widgetsPath, "resourceVersion", "10")
	follow(t, s, widgetsPath, "resourceVersion", "8").want("ERROR Expired")
	code, body := ask(t, s, widgetsPath, values("resourceVersion", "8", "resourceVersionMatch", "Exact"), "")
	require.Equal(t, http.StatusGone, code, body)
	_, err = s.Create(widgets, widget("a", "w1", 1))
	require.NoError(t, err)
	again.want("ADDED w1 11")
}

func TestObserve(t *testing.T) {
	s := start(t, informertest.Options{})
	var log []string
	var uids []string
	stop := s.Observe(func(w informertest.Write) {
		log = append(log, fmt.Sprintf("%s %s %s %s", w.Type, w.Resource.Resource, w.Key, w.ResourceVersion))
		uids = append(uids, string(w.UID))
		require.WithinDuration(t, time.Now(), w.Time, time.Minute)
	})
	create(t, s, configMap("a", "1", "x"))
	made, err := s.Get(configMaps, "a", "1")
	require.NoError(t, err)
	for range 2 { // the second changes nothing
		_, err = s.Update(configMaps, configMap("a", "1", "y"))
		require.NoError(t, err)
	}
	backup := s.Backup()
	require.NoError(t, s.Delete(configMaps, "a", "1"))
	require.Equal(t, []string{"created configmaps a/1 2", "updated configmaps a/1 3", "deleted configmaps a/1 4"}, log)
	for _, uid := range uids {
		require.EqualValues(t, made.GetUID(), uid)
	}

	log = nil
	s.SetResourceVersion(10)
	s.Restore(backup)
	require.Equal(t, []string{"restored   3", "kept configmaps a/1 3"}, log)
	log = nil
	s.SetResourceVersion(2)
	require.Equal(t, []string{"restored   2", "kept configmaps a/1 2"}, log)
	log = nil
	s.RemoveResource(configMaps)
	require.Equal(t, []string{"deleted configmaps a/1 3"}, log)
	stop()
	_, err = s.Create(widgets, widget("a", "w", 1))
	require.NoError(t, err)
	require.Len(t, log, 1)
	require.Equal(t, "WriteType(0)", informertest.WriteType(0).String())
}

func TestOpaqueVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{InMemory: true, OpaqueVersions: true})
		var rvs []string
		defer s.Observe(func(w informertest.Write) { rvs = append(rvs, w.ResourceVersion) })()
		create(t, s, fiveObjects()...)
		for i, rv := range rvs {
			require.Regexp(t, regexp.MustCompile(`^v-[0-9a-f]+$`), rv)
			require.NotContains(t, rvs[:i], rv)
			_, err := resourceversion.CompareResourceVersion(rv, rv)
			require.Error(t, err)
		}
		require.Equal(t, rvs[4], s.ResourceVersion())
		all, err := s.ResourceVersions(configMaps, "")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"b/2": rvs[0], "a/1": rvs[1], "a/3": rvs[2], "b/1": rvs[3], "a/2": rvs[4]}, all)

		for _, accept := range []string{"", "application/vnd.kubernetes.protobuf", asMetadatas} {
			_, body := ask(t, s, configMapsPath, nil, accept)
			for _, rv := range rvs {
				require.Contains(t, body, rv)
			}
		}
		page, status := list(t, s, "limit", "2", "resourceVersion", rvs[4], "resourceVersionMatch", "Exact")
		require.Nil(t, status)
		require.Equal(t, rvs[4], page.ResourceVersion)
		rest, status := list(t, s, "continue", page.Continue)
		require.Nil(t, status)
		require.Len(t, rest.Items, 3)

		w := follow(t, s, configMapsPath, "resourceVersion", rvs[2], "allowWatchBookmarks", "true")
		w.want("ADDED 1 "+rvs[3], "ADDED 2 "+rvs[4], "BOOKMARK "+rvs[4])
		_, status = list(t, s, "resourceVersion", "6")
		require.EqualValues(t, 400, status.Code)

		made, err := s.Get(configMaps, "a", "1")
		require.NoError(t, err)
		require.Equal(t, rvs[1], made.GetResourceVersion())
		made.SetLabels(map[string]string{"new": "label"})
		made, err = s.Update(configMaps, made)
		require.NoError(t, err)
		_, err = s.Update(configMaps, made)
		require.NoError(t, err)
		made.SetResourceVersion(rvs[1])
		_, err = s.Update(configMaps, made)
		require.ErrorContains(t, err, rvs[1])

		s.SetResourceVersion(4)
		_, status = list(t, s, "resourceVersion", rvs[5])
		require.EqualValues(t, 504, status.Code)
		require.Contains(t, status.Message, rvs[5])
	})
}
