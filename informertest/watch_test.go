package informertest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

const configMapsPath = "/api/v1/configmaps"

func TestWatchBegins(t *testing.T) {
	state := []string{"ADDED 1 3", "ADDED 2 6", "ADDED 3 4", "ADDED 1 5", "ADDED 2 2"}
	stream := []string{"sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan"}
	for _, c := range []struct {
		ask  []string
		want []string
	}{
		{nil, state},
		{[]string{"resourceVersion", "0"}, state},
		{[]string{"allowWatchBookmarks", "true"}, append(state[:5:5], "BOOKMARK 6 initial-end")},
		{[]string{"allowWatchBookmarks", "true", "resourceVersion", "0"}, append(state[:5:5], "BOOKMARK 6 initial-end")},
		{[]string{"continue", "x", "resourceVersion", "6"}, nil},
		{[]string{"resourceVersion", "6"}, nil},
		{[]string{"resourceVersion", "4"}, []string{"ADDED 1 5", "ADDED 2 6"}},
		{[]string{"resourceVersion", "0", "sendInitialEvents", "false", "resourceVersionMatch", "NotOlderThan"}, nil},
		{[]string{"resourceVersion", "4", "sendInitialEvents", "false", "resourceVersionMatch", "NotOlderThan"}, []string{"ADDED 1 5", "ADDED 2 6"}},
		{stream, state},
		{append([]string{"allowWatchBookmarks", "true"}, stream...), append(state[:5:5], "BOOKMARK 6 initial-end")},
		{append([]string{"allowWatchBookmarks", "true", "resourceVersion", "3"}, stream...), append(state[:5:5], "BOOKMARK 6 initial-end")},
		{append([]string{"allowWatchBookmarks", "true", "labelSelector", "value=y"}, stream...), []string{"ADDED 3 4", "ADDED 1 5", "BOOKMARK 6 initial-end"}},
	} {
		t.Run(fmt.Sprint(c.ask), func(t *testing.T) {
			s := five(t)
			w := follow(t, s, configMapsPath, c.ask...)
			w.want(c.want...)
			create(t, s, configMap("c", "live", "y"))
			w.want("ADDED live 7")
		})
	}
}

func TestWatchFollows(t *testing.T) {
	s := start(t, informertest.Options{})
	everywhere := follow(t, s, configMapsPath)
	inA := follow(t, s, "/api/v1/namespaces/a/configmaps")
	labelled := follow(t, s, configMapsPath, "labelSelector", "value=on")
	named := follow(t, s, configMapsPath, "fieldSelector", "metadata.name=1")

	create(t, s, configMap("a", "1", "off"))                  // 2
	_, err := s.Update(configMaps, configMap("a", "1", "on")) // 3
	require.NoError(t, err)
	_, err = s.Update(configMaps, configMap("a", "1", "on")) // nothing new
	require.NoError(t, err)
	_, err = s.Create(widgets, widget("a", "w", 1)) // 4
	require.NoError(t, err)
	create(t, s, configMap("b", "2", "on"))                   // 5
	_, err = s.Update(configMaps, configMap("a", "1", "off")) // 6
	require.NoError(t, err)
	require.NoError(t, s.Delete(configMaps, "b", "2")) // 7
	require.NoError(t, s.Delete(configMaps, "a", "1")) // 8

	everywhere.want("ADDED 1 2", "MODIFIED 1 3", "ADDED 2 5", "MODIFIED 1 6", "DELETED 2 7", "DELETED 1 8")
	inA.want("ADDED 1 2", "MODIFIED 1 3", "MODIFIED 1 6", "DELETED 1 8")
	labelled.want("ADDED 1 3", "ADDED 2 5", "DELETED 1 6", "DELETED 2 7")
	named.want("ADDED 1 2", "MODIFIED 1 3", "MODIFIED 1 6", "DELETED 1 8")
}

func TestDeletedCarriesTheLastState(t *testing.T) {
	s := start(t, informertest.Options{})
	create(t, s, configMap("a", "1", "last"))
	require.NoError(t, s.Delete(configMaps, "a", "1"))
	w := follow(t, s, configMapsPath, "resourceVersion", "2")
	f, ok := w.next()
	require.True(t, ok)
	require.Equal(t, "DELETED 1 3", f.String())
	require.Equal(t, map[string]any{"value": "last"}, f.Object.Object["data"])
	require.Equal(t, "ConfigMap", f.Object.GetKind())
}

func TestWatchRefusals(t *testing.T) { inBubble(t, watchRefusals) }

func watchRefusals(t *testing.T, s *informertest.Server) {
	s.Compact()
	for _, ask := range [][]string{
		{"timeoutSeconds", "soon"},
		{"fieldSelector", "status.phase=Running"},
	} {
		code, body := ask1(t, s, ask)
		require.Equal(t, http.StatusBadRequest, code, body)
	}
	for _, ask := range [][]string{
		{"sendInitialEvents", "true"},
		{"sendInitialEvents", "true", "resourceVersion", "6", "resourceVersionMatch", "Exact"},
		{"resourceVersion", "6", "resourceVersionMatch", "NotOlderThan"},
		{"continue", "x"},
	} {
		code, body := ask1(t, s, ask)
		require.Equal(t, http.StatusUnprocessableEntity, code, body)
	}

	for _, path := range []string{configMapsPath + "?watch=true&resourceVersion=x", "/api/v1/namespaces/a/configmaps/1?resourceVersion=x"} {
		path, query, _ := strings.Cut(path, "?")
		asked, err := url.ParseQuery(query)
		require.NoError(t, err)
		code, body := ask(t, s, path, asked, "")
		require.Equal(t, http.StatusInternalServerError, code, body)
		require.Contains(t, body, `"message":"resourceVersion: Invalid value: \"x\": `)
	}
	follow(t, s, configMapsPath, "timeoutSeconds", "-1").wantEnd()

	old := follow(t, s, configMapsPath, "resourceVersion", "5")
	old.want("ERROR Expired")
	old.wantEnd()
	future := follow(t, s, configMapsPath, "resourceVersion", "7", "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan")
	future.want("ERROR Timeout")
	future.wantEnd()
}

func ask1(t *testing.T, s *informertest.Server, pairs []string) (int, string) {
	t.Helper()
	return ask(t, s, configMapsPath, values(append(pairs, "watch", "true")...), "")
}

func TestCompactionLeavesRunningWatchesAlone(t *testing.T) {
	s := five(t)
	w := follow(t, s, configMapsPath, "resourceVersion", "3")
	for i := range 20 {
		create(t, s, configMap("c", fmt.Sprint("n", i), "x"))
		s.Compact()
	}
	w.want("ADDED 3 4", "ADDED 1 5", "ADDED 2 6")
	for i := range 20 {
		w.want(fmt.Sprintf("ADDED n%d %d", i, 7+i))
	}
}

func TestWatchThatFallsBehindACompactionExpires(t *testing.T) {
	s := start(t, informertest.Options{InMemory: true})
	w := follow(t, s, configMapsPath)
	// A connection in memory holds nothing, so that the writer of the watch stands still until the
	// client reads.
	big := configMap("a", "1", "x")
	for i := range 4000 {
		big.Data["value"] = strings.Repeat("x", 1000) + fmt.Sprint(i)
		var err error
		if i == 0 {
			_, err = s.Create(configMaps, big)
		} else {
			_, err = s.Update(configMaps, big)
		}
		require.NoError(t, err)
	}
	s.Compact()
	var last frame
	for {
		f, ok := w.next()
		if !ok {
			break
		}
		last = f
	}
	require.Equal(t, "ERROR Expired", last.String())
	require.EqualValues(t, http.StatusGone, last.Object.Object["code"])
}

func TestSequenceSetBack(t *testing.T) {
	s := five(t)
	w := follow(t, s, configMapsPath, "resourceVersion", "6")
	s.SetResourceVersion(100)
	create(t, s, configMap("c", "1", "x"))
	w.want("ADDED 1 101")
	whole, status := list(t, s, "resourceVersion", "50", "resourceVersionMatch", "Exact")
	require.Nil(t, status)
	require.Len(t, whole.Items, 5)

	s.SetResourceVersion(4)
	w.wantEnd()
	require.Equal(t, "4", s.ResourceVersion())
	now, status := list(t, s)
	require.Nil(t, status)
	require.Equal(t, "4", now.ResourceVersion)
	got := map[string]string{}
	for _, o := range now.Items {
		got[o.Namespace+"/"+o.Name] = o.ResourceVersion
	}
	require.Equal(t, map[string]string{"b/2": "2", "a/1": "3", "a/3": "4", "b/1": "4", "a/2": "4", "c/1": "4"}, got)

	since := follow(t, s, configMapsPath, "resourceVersion", "4")
	create(t, s, configMap("c", "2", "x"))
	since.want("ADDED 2 5")
	require.Panics(t, func() { s.SetResourceVersion(0) })
}

func TestConnectionsAreCut(t *testing.T) {
	s := five(t)
	w := follow(t, s, configMapsPath, "resourceVersion", "6")
	s.CloseClientConnections()
	_, err := w.in.ReadByte()
	require.Error(t, err)
	got, status := list(t, s)
	require.Nil(t, status)
	require.Len(t, got.Items, 5)
}

func TestCloseEndsWatches(t *testing.T) {
	s := informertest.NewServer(informertest.Options{})
	w := follow(t, s, configMapsPath)
	s.Close()
	s.Close()
	_, err := w.in.ReadByte()
	require.Error(t, err)
	_, err = http.Get(s.URL() + configMapsPath)
	require.Error(t, err)
}

func TestCloseDoesNotWaitForSlowReaders(t *testing.T) {
	for _, inMemory := range []bool{false, true} {
		s := informertest.NewServer(informertest.Options{InMemory: inMemory})
		w := follow(t, s, configMapsPath)
		o := configMap("a", "1", "x")
		o.Data["value"] = strings.Repeat("x", 1<<19)
		create(t, s, o)
		for i := range 16 {
			o.Data["n"] = strings.Repeat("n", i)
			_, err := s.Update(configMaps, o)
			require.NoError(t, err)
		}
		w.want("ADDED 1 2")
		s.Close()
	}
}
