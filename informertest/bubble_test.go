package informertest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

func TestBookmarksComeOncePerInterval(t *testing.T) {
	for _, every := range []time.Duration{0, 20 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, informertest.Options{InMemory: true, BookmarkInterval: every})
				if every == 0 {
					every = time.Minute
				}
				create(t, s, configMap("a", "1", "x"))
				begin := time.Now()
				w := follow(t, s, configMapsPath, "resourceVersion", "2", "allowWatchBookmarks", "true", "timeoutSeconds", "600")
				n := int(10*time.Minute/every) - 1
				for i := range n {
					// Another resource's write moves the sequence, and the bookmark tells.
					_, err := s.Create(widgets, widget("a", fmt.Sprint(i), 1))
					require.NoError(t, err)
					w.want(fmt.Sprint("BOOKMARK ", 3+i))
					require.Equal(t, time.Duration(i+1)*every, time.Since(begin))
				}
				w.want(fmt.Sprint("BOOKMARK ", 2+n))
				require.Equal(t, 10*time.Minute-2*time.Second, time.Since(begin), "a last one right before the end")
				w.wantEnd()
				require.Equal(t, 10*time.Minute, time.Since(begin))
			})
		})
	}
}

func TestWatchEnds(t *testing.T) {
	for _, c := range []struct {
		ask   []string
		after time.Duration
	}{
		{[]string{"timeoutSeconds", "7"}, 7 * time.Second},
		{nil, 30 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, informertest.Options{InMemory: true})
			begin := time.Now()
			w := follow(t, s, configMapsPath, c.ask...)
			w.wantEnd()
			require.Equal(t, c.after, time.Since(begin))
		})
	}
}

func TestBookmarksComeAmongEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{InMemory: true})
		w := follow(t, s, configMapsPath, "resourceVersion", "1", "allowWatchBookmarks", "true")
		quiet := follow(t, s, configMapsPath, "timeoutSeconds", "90")
		for i := range 4 {
			time.Sleep(25 * time.Second)
			create(t, s, configMap("a", fmt.Sprint("n", i), "x"))
			if i == 2 {
				w.want("BOOKMARK 3")
			}
			w.want(fmt.Sprintf("ADDED n%d %d", i, 2+i))
			if i < 3 {
				quiet.want(fmt.Sprintf("ADDED n%d %d", i, 2+i))
			}
		}
		w.want("BOOKMARK 5")
		quiet.wantEnd()
	})
}
