package informertest_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

// bookmarkedWatchList is the query of a watch-list that wants bookmarks and lasts.
var bookmarkedWatchList = []string{"sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan", "allowWatchBookmarks", "true", "timeoutSeconds", "600"}

// inBubble runs a test with a server of five objects, in memory.
func inBubble(t *testing.T, test func(t *testing.T, s *informertest.Server)) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{InMemory: true})
		create(t, s, fiveObjects()...)
		test(t, s)
	})
}

var fiveAdded = []string{"ADDED 1 3", "ADDED 2 6", "ADDED 3 4", "ADDED 1 5", "ADDED 2 2"}

func TestFaultClose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		under := follow(t, s, configMapsPath, "resourceVersion", "6", "timeoutSeconds", "600")
		begin := time.Now()
		heal := inject(t, s, "close times=2")
		under.wantEnd()
		follow(t, s, configMapsPath).wantEnd()
		require.Zero(t, time.Since(begin))
		follow(t, s, configMapsPath).want(fiveAdded...)
		heal()
	})
}

func TestFaultErrorEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		for code, reason := range map[int]string{410: "Expired", 500: "InternalError", 429: "TooManyRequests", 504: "Timeout"} {
			under := follow(t, s, configMapsPath, "resourceVersion", "6", "timeoutSeconds", "600")
			begin := time.Now()
			inject(t, s, fmt.Sprintf("error-event=%d", code))
			for _, w := range []*stream{under, follow(t, s, configMapsPath), follow(t, s, configMapsPath, bookmarkedWatchList...)} {
				f, ok := w.next()
				require.True(t, ok)
				require.Equal(t, "ERROR "+reason, f.String())
				require.EqualValues(t, code, f.Object.Object["code"])
				w.wantEnd()
			}
			require.Zero(t, time.Since(begin))
			s.Heal()
		}
	})
}

func TestFaultNoBookmarks(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		begin := time.Now()
		heal := inject(t, s, "no-bookmarks")
		w := follow(t, s, configMapsPath, bookmarkedWatchList...)
		w.want(fiveAdded...)
		time.AfterFunc(150*time.Second, heal)
		w.want("BOOKMARK 6")
		require.Equal(t, 3*time.Minute, time.Since(begin))
		inject(t, s, "no-bookmarks")
		w.wantEnd()
	})
}

func TestFaultDropBookmarks(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		inject(t, s, "drop-bookmarks=2")
		w := follow(t, s, configMapsPath, "resourceVersion", "6", "allowWatchBookmarks", "true", "timeoutSeconds", "36000")
		n := 0
		for {
			if _, ok := w.next(); !ok {
				break
			}
			n++
		}
		require.InDelta(t, 300, n, 60)
	})
}

func TestFaultWatchLists(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		heal := inject(t, s, "refuse-watch-list")
		code, body := ask(t, s, configMapsPath, values(append(bookmarkedWatchList, "watch", "1")...), "")
		require.Equal(t, 422, code, body)
		follow(t, s, configMapsPath).want(fiveAdded...)
		heal()

		heal = inject(t, s, "ignore-watch-list")
		old := follow(t, s, configMapsPath, append(bookmarkedWatchList, "resourceVersion", "4")...)
		old.want("ADDED 1 5", "ADDED 2 6", "BOOKMARK 6")
		heal()

		heal = inject(t, s, "endless-watch-list")
		endless := follow(t, s, configMapsPath, bookmarkedWatchList...)
		endless.want(fiveAdded...)
		heal()
		time.Sleep(2 * time.Minute)
		create(t, s, configMap("c", "1", "x"))
		endless.want("ADDED 1 7")
		endless.wantEnd()
		follow(t, s, configMapsPath, append(bookmarkedWatchList, "labelSelector", "value=y")...).want("ADDED 3 4", "ADDED 1 5", "BOOKMARK 7 initial-end")
	})
}

func TestFaultSwap(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		inject(t, s, "swap=1")
		w := follow(t, s, configMapsPath, bookmarkedWatchList...)
		w.want("ADDED 2 6", "ADDED 1 3", "ADDED 1 5", "ADDED 3 4", "ADDED 2 2", "BOOKMARK 6 initial-end")

		create(t, s, configMap("c", "1", "x"))
		time.Sleep(time.Second)
		create(t, s, configMap("c", "2", "x"))
		w.want("ADDED 2 8", "ADDED 1 7")
		// A bookmark does not overtake, and nothing waits for ever.
		create(t, s, configMap("c", "3", "x"))
		w.want("ADDED 3 9", "BOOKMARK 9")
		create(t, s, configMap("c", "4", "x"))
		begin := time.Now()
		time.AfterFunc(time.Second, s.Heal)
		w.want("ADDED 4 10")
		require.Equal(t, time.Second, time.Since(begin))

		inject(t, s, "swap=1")
		short := follow(t, s, configMapsPath, "resourceVersion", "9", "timeoutSeconds", "5")
		short.want("ADDED 4 10")
		short.wantEnd()
		inject(t, s, "error-event=500 skip=2") // what is under way, and the next
		create(t, s, configMap("c", "5", "x"))
		failing := follow(t, s, configMapsPath, "resourceVersion", "10")
		synctest.Wait()
		inject(t, s, "error-event=500")
		failing.want("ADDED 5 11", "ERROR InternalError")
	})
}

func TestFaultLose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		heal := inject(t, s, "lose=1")
		w := follow(t, s, configMapsPath, bookmarkedWatchList...)
		w.want(append(slices.Clone(fiveAdded), "BOOKMARK 6 initial-end")...)
		create(t, s, configMap("c", "1", "x"))
		require.NoError(t, s.Delete(configMaps, "c", "1"))
		w.want("BOOKMARK 8")
		heal()
		create(t, s, configMap("c", "2", "x"))
		w.want("ADDED 2 9")
	})
}

func TestFaultRepeat(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		inject(t, s, "repeat=1")
		w := follow(t, s, configMapsPath, "timeoutSeconds", "600")
		var fresh, again []string
		for i := range 30 {
			create(t, s, configMap("c", fmt.Sprint("n", i), "x"))
		}
		for range 35 {
			f, ok := w.next()
			require.True(t, ok)
			fresh = append(fresh, f.String())
			if len(fresh) == 1 {
				continue
			}
			f, ok = w.next()
			require.True(t, ok)
			again = append(again, f.String())
			require.Contains(t, fresh[max(0, len(fresh)-9):len(fresh)-1], f.String())
		}
		require.Len(t, again, 34)
		require.Equal(t, fiveAdded, fresh[:5])
		require.Greater(t, len(slices.Compact(slices.Sorted(slices.Values(again)))), 5)
		s.Heal()
		create(t, s, configMap("d", "1", "x"), configMap("d", "2", "x"))
		w.want("ADDED 1 37", "ADDED 2 38")
	})
}
