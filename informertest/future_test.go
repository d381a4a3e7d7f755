package informertest_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

func TestAWatchFromTheFutureIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{InMemory: true})
		create(t, s, configMap("a", "1", "x")) // 2
		begin := time.Now()
		w := follow(t, s, configMapsPath, "resourceVersion", "4", "allowWatchBookmarks", "true", "timeoutSeconds", "600")
		require.Zero(t, time.Since(begin), "it is accepted at once")
		time.Sleep(5 * time.Minute)
		create(t, s, configMap("a", "2", "x"), configMap("a", "3", "x")) // 3, 4
		time.Sleep(2*time.Minute + 30*time.Second)                       // between two bookmarks
		create(t, s, configMap("a", "4", "x"), configMap("a", "5", "x"))
		w.want("ADDED 4 5")
		require.Equal(t, 7*time.Minute+30*time.Second, time.Since(begin), "no bookmark before")
		w.want("ADDED 5 6", "BOOKMARK 6")
	})
}

func TestAWatchFromTheFutureSurvivesCompactions(t *testing.T) {
	s := five(t)
	w := follow(t, s, configMapsPath, "resourceVersion", "8")
	for _, name := range []string{"7", "8", "9"} {
		create(t, s, configMap("c", name, "x"))
		s.Compact()
	}
	w.want("ADDED 9 9")
}

func TestAWatchOfTheFutureEndsWhenTheSequenceGoesBack(t *testing.T) {
	s := five(t)
	w := follow(t, s, configMapsPath, "resourceVersion", "100")
	s.SetResourceVersion(4)
	w.wantEnd()
}

func TestReadsOfTheFutureWait(t *testing.T) {
	for _, c := range []struct {
		path  string
		query []string
	}{
		{configMapsPath, []string{"resourceVersion", "7"}},
		{configMapsPath, []string{"resourceVersion", "7", "limit", "1"}},
		{"/api/v1/namespaces/a/configmaps/1", []string{"resourceVersion", "7"}},
		{"/api/v1/namespaces/a/configmaps/none", []string{"resourceVersion", "7"}},
		{configMapsPath, []string{"resourceVersion", "7", "watch", "1", "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan", "timeoutSeconds", "5"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, informertest.Options{InMemory: true})
			create(t, s, fiveObjects()...)
			watching := c.query[len(c.query)-1] == "5"
			begin := time.Now()
			code, body := ask(t, s, c.path, values(c.query...), "")
			require.Equal(t, 3*time.Second, time.Since(begin))
			require.Contains(t, body, "Too large resource version: 7, current: 6")
			if watching {
				require.Equal(t, http.StatusOK, code)
				require.Contains(t, body, `"type":"ERROR"`)
			} else {
				require.Equal(t, http.StatusGatewayTimeout, code)
			}

			time.AfterFunc(2*time.Second, func() { create(t, s, configMap("c", "1", "x")) })
			begin = time.Now()
			code, body = ask(t, s, c.path, values(c.query...), "")
			require.NotContains(t, body, "Too large")
			if c.path == "/api/v1/namespaces/a/configmaps/none" {
				require.Equal(t, http.StatusNotFound, code)
			} else {
				require.Equal(t, http.StatusOK, code)
			}
			waited := 2 * time.Second
			if watching {
				waited = 5*time.Second + waited // until it ends
			}
			require.Equal(t, waited, time.Since(begin))
		})
	}
}
