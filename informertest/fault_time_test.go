package informertest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

func TestFaultDelayOfWatchList(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		inject(t, s, "delay=2s")
		begin := time.Now()
		w := follow(t, s, configMapsPath, bookmarkedWatchList...)
		for i, event := range fiveAdded {
			w.want(event)
			require.Equal(t, time.Duration(i+1)*2*time.Second, time.Since(begin))
		}
		w.want("BOOKMARK 6 initial-end")
		require.Equal(t, 10*time.Second, time.Since(begin), "a bookmark takes no time")
		create(t, s, configMap("c", "1", "x"))
		w.want("ADDED 1 7")
		require.Equal(t, 12*time.Second, time.Since(begin))
	})
}

func TestFaultDelayOfPage(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		inject(t, s, "delay=2s")
		begin := time.Now()
		page, status := list(t, s, "limit", "3")
		require.Nil(t, status)
		require.Len(t, page.Items, 3)
		require.Equal(t, 6*time.Second, time.Since(begin))
	})
}

func TestFaultDelayHeals(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		begin := time.Now()
		time.AfterFunc(30*time.Second, inject(t, s, "delay=1h"))
		w := follow(t, s, configMapsPath, bookmarkedWatchList...)
		w.want(fiveAdded...)
		w.want("BOOKMARK 6 initial-end")
		require.Equal(t, 30*time.Second, time.Since(begin))
		defer inject(t, s, "delay=7s")() // what is under way too
		begin = time.Now()
		create(t, s, configMap("c", "1", "x"))
		w.want("ADDED 1 7")
		require.Equal(t, 7*time.Second, time.Since(begin))
	})
}

// The time that a watch was asked to last counts from its beginning, as at a kube-apiserver. So a
// watch-list may end before its initial events do.
func TestWatchEndsAmongInitialEvents(t *testing.T) {
	for fault, shown := range map[string]int{"delay=130s": 4, "delay=299s": 2, "delay=1h": 0} {
		inBubble(t, func(t *testing.T, s *informertest.Server) {
			inject(t, s, fault)
			begin := time.Now()
			w := follow(t, s, configMapsPath, bookmarkedWatchList...)
			w.want(fiveAdded[:shown]...)
			w.wantEnd()
			require.Equal(t, 10*time.Minute, time.Since(begin), fault)
		})
	}
}

func TestFaultCloseAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		under := follow(t, s, configMapsPath, "resourceVersion", "6", "timeoutSeconds", "600")
		begin := time.Now()
		time.Sleep(time.Minute)
		heal := inject(t, s, "close=5m")
		under.wantEnd()
		require.Equal(t, 5*time.Minute, time.Since(begin))
		inject(t, s, "delay=110s")
		begin = time.Now()
		w := follow(t, s, configMapsPath, bookmarkedWatchList...)
		w.want(fiveAdded[:2]...)
		w.wantEnd()
		require.Equal(t, 5*time.Minute, time.Since(begin), "also among initial events")
		heal()
		inject(t, s, "close=1h")
		begin = time.Now()
		follow(t, s, configMapsPath, "resourceVersion", "6", "timeoutSeconds", "600").wantEnd()
		require.Equal(t, 10*time.Minute, time.Since(begin), "the time that was asked for is shorter")
	})
}

// A watch whose time is over before an event is there tells no version that it has not come to.
func TestOvertakenWatchSendsNoBookmark(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		inject(t, s, "delay=130s")
		w := follow(t, s, configMapsPath, "resourceVersion", "6", "allowWatchBookmarks", "true", "timeoutSeconds", "200")
		create(t, s, configMap("c", "1", "x"))
		time.Sleep(10 * time.Second)
		create(t, s, configMap("c", "2", "x"))
		w.want("ADDED 1 7")
		w.wantEnd()
	})
}
