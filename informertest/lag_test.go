package informertest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

// lagging has five objects up to resource version 6, which a replica has; and since then, at 7 to
// 9, a/1 is gone, a/2 has changed and c/1 is new. It compacts, if compact says so.
func lagging(t *testing.T, compact bool, test func(t *testing.T, s *informertest.Server, heal func())) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{InMemory: true})
		create(t, s, fiveObjects()...)
		heal := inject(t, s, "list get watch watch-list lag")
		require.NoError(t, s.Delete(configMaps, "a", "1"))
		_, err := s.Update(configMaps, configMap("a", "2", "changed"))
		require.NoError(t, err)
		create(t, s, configMap("c", "1", "x"))
		if compact {
			s.Compact()
		}
		test(t, s, heal)
	})
}

func TestFaultLagOfLists(t *testing.T) {
	for _, compact := range []bool{false, true} {
		lagging(t, compact, func(t *testing.T, s *informertest.Server, heal func()) {
			then, now := []string{"a/1", "a/2", "a/3", "b/1", "b/2"}, []string{"a/2", "a/3", "b/1", "b/2", "c/1"}
			stale := [][]string{{"resourceVersion", "0"}, {"resourceVersion", "6"}, {"resourceVersion", "2", "resourceVersionMatch", "NotOlderThan"}}
			for _, ask := range stale {
				got, status := list(t, s, ask...)
				require.Nil(t, status)
				require.Equal(t, then, names(got))
				require.Equal(t, "6", got.ResourceVersion)
				require.Equal(t, "x", got.Items[1].Data["value"])
			}
			got, _ := list(t, s, "resourceVersion", "0", "labelSelector", "value=y")
			require.Equal(t, []string{"a/3", "b/1"}, names(got))
			page, status := list(t, s, "resourceVersion", "3", "resourceVersionMatch", "NotOlderThan", "limit", "2")
			require.Nil(t, status)
			require.Equal(t, then[:2], names(page))
			require.EqualValues(t, 3, *page.RemainingItemCount)
			rest, status := list(t, s, "continue", page.Continue)
			if compact {
				require.EqualValues(t, 410, status.Code)
			} else {
				require.Equal(t, then[2:], names(rest))
			}
			got, _ = list(t, s)
			require.Equal(t, now, names(got))
			require.Equal(t, "9", got.ResourceVersion)

			for _, ask := range [][]string{{"resourceVersion", "7"}, {"resourceVersion", "9", "resourceVersionMatch", "Exact"}} {
				begin := time.Now()
				_, status := list(t, s, ask...)
				require.EqualValues(t, 504, status.Code)
				require.Equal(t, 3*time.Second, time.Since(begin))
			}
			for path, want := range map[string]int{
				"/api/v1/namespaces/a/configmaps/1?resourceVersion=0":  200,
				"/api/v1/namespaces/a/configmaps/1?resourceVersion=6":  200,
				"/api/v1/namespaces/a/configmaps/1?resourceVersion=7":  504,
				"/api/v1/namespaces/a/configmaps/1":                    404,
				"/api/v1/namespaces/c/configmaps/1?resourceVersion=0":  404,
				"/api/v1/namespaces/c/configmaps/1?resourceVersion=":   200,
				"/api/v1/namespaces/aa/configmaps/1?resourceVersion=0": 404,
			} {
				resp, err := httpClient(t, s).Get(s.URL() + path)
				require.NoError(t, err)
				resp.Body.Close()
				require.Equal(t, want, resp.StatusCode, path)
			}

			// It catches up while a request waits for it.
			time.AfterFunc(2*time.Second, heal)
			got, status = list(t, s, "resourceVersion", "9")
			require.Nil(t, status)
			require.Equal(t, now, names(got))
			got, _ = list(t, s, "resourceVersion", "0")
			require.Equal(t, now, names(got))
		})
	}
}

func TestFaultLagOfWatches(t *testing.T) {
	for _, compact := range []bool{false, true} {
		lagging(t, compact, func(t *testing.T, s *informertest.Server, heal func()) {
			s.Heal()
			under := follow(t, s, configMapsPath, "resourceVersion", "9", "allowWatchBookmarks", "true", "timeoutSeconds", "3600")
			synctest.Wait() // until it is under way
			inject(t, s, "lag")
			create(t, s, configMap("c", "2", "x")) // 10
			if compact {
				s.Compact()
			}
			begin := time.Now()
			state := follow(t, s, configMapsPath, "resourceVersion", "0")
			state.want("ADDED 2 8", "ADDED 3 4", "ADDED 1 5", "ADDED 2 2", "ADDED 1 9")
			since := follow(t, s, configMapsPath, "resourceVersion", "9")
			future := follow(t, s, configMapsPath, "resourceVersion", "10", "allowWatchBookmarks", "true", "timeoutSeconds", "3600")
			watchList := []string{"sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan", "allowWatchBookmarks", "true", "timeoutSeconds", "3600"}
			listed := follow(t, s, configMapsPath, append(watchList, "resourceVersion", "0")...)
			listed.want("ADDED 2 8", "ADDED 3 4", "ADDED 1 5", "ADDED 2 2", "ADDED 1 9", "BOOKMARK 9 initial-end")
			require.Zero(t, time.Since(begin))
			consistent := follow(t, s, configMapsPath, watchList...)
			consistent.want("ERROR Timeout")
			require.Equal(t, 3*time.Second, time.Since(begin))
			under.want("BOOKMARK 9", "BOOKMARK 9")
			time.Sleep(time.Until(begin.Add(3 * time.Minute).Add(30 * time.Second)))
			create(t, s, configMap("c", "3", "x")) // 11
			s.Heal()
			under.want("BOOKMARK 9", "ADDED 2 10", "ADDED 3 11")
			for _, w := range []*stream{state, since} {
				w.want("ADDED 2 10", "ADDED 3 11")
			}
			future.want("ADDED 3 11", "BOOKMARK 11")
			listed.want("BOOKMARK 9", "ADDED 2 10")
		})
	}
}

func TestFaultLagAfterARestore(t *testing.T) {
	lagging(t, false, func(t *testing.T, s *informertest.Server, heal func()) {
		s.SetResourceVersion(4)
		create(t, s, configMap("d", "1", "x"))
		got, status := list(t, s, "resourceVersion", "0")
		require.Nil(t, status)
		require.Equal(t, "4", got.ResourceVersion)
		require.Equal(t, []string{"a/2", "a/3", "b/1", "b/2", "c/1"}, names(got))
		w := follow(t, s, configMapsPath, "resourceVersion", "4")
		heal()
		w.want("ADDED 1 5")
	})
}

func TestFaultLagMeetsOneRequest(t *testing.T) {
	s := five(t)
	inject(t, s, "list lag times=1")
	create(t, s, configMap("c", "1", "x"))
	for i, want := range []int{5, 6} {
		got, status := list(t, s, "resourceVersion", "0")
		require.Nil(t, status)
		require.Len(t, got.Items, want, fmt.Sprint(i))
	}
}
