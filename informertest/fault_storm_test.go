package informertest_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/informertest"
)

// TestFaultStorm has many faults come and go at once, beside compactions, restores and removals,
// while clients ask for everything. All must end, and what the server shows after it must be what
// it holds.
func TestFaultStorm(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) { faultStorm(t, seed) })
	}
}

func faultStorm(t *testing.T, seed uint64) {
	s := start(t, informertest.Options{InMemory: true, TLS: seed%2 == 1, Seed: seed, OpaqueVersions: seed%3 == 2})
	create(t, s, fiveObjects()...)
	client := httpClient(t, s)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(i)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				rv := []string{"", "0", s.ResourceVersion()}[dice.IntN(3)]
				query := [][]string{
					{"resourceVersion", rv, "limit", "2"},
					{"resourceVersion", rv, "watch", "1", "timeoutSeconds", "20", "allowWatchBookmarks", "true"},
					append([]string{"resourceVersion", rv, "watch", "1"}, bookmarkedWatchList...),
				}[i%3]
				// Whatever comes of it.
				_, _, _ = try(t, client, s, query...)
				time.Sleep(time.Duration(1+dice.IntN(2000)) * time.Millisecond)
			}
		})
	}

	faults := []string{
		"refuse times=2", "reset odds=2", "hang", "cut=300", "cut=0,clean odds=2", "slow=400", "garbage=2", "mistyped=2", "unversioned=2", "oversize=1,70000", "503 odds=2",
		"410 odds=3", "error-event=500", "no-bookmarks", "drop-bookmarks=2", "ignore-watch-list", "refuse-watch-list", "endless-watch-list",
		"close times=3", "lag", "lag skip=1 times=2", "repeat=2", "swap=2",
	}
	dice := rand.New(rand.NewPCG(seed, 99))
	var heals []func()
	backup := s.Backup()
	for n := range 150 {
		switch k := dice.IntN(20); {
		case k < 8:
			heals = append(heals, inject(t, s, faults[dice.IntN(len(faults))]))
		case k < 12 && len(heals) > 0:
			heals[dice.IntN(len(heals))]()
		case k < 14:
			_, _ = s.Create(configMaps, configMap("c", fmt.Sprint("n", n), "x"))
		case k < 15:
			_ = s.Delete(configMaps, "a", "1")
		case k < 16:
			s.Compact()
		case k < 17:
			s.Heal()
			heals = nil
		case k < 18:
			s.Restore(backup)
		case k < 19:
			s.RemoveResource(configMaps)
			s.AddResource(informertest.Resource{GroupVersionResource: configMaps, Kind: "ConfigMap", Namespaced: true})
		default:
			s.SetResourceVersion(5)
		}
		time.Sleep(time.Duration(dice.IntN(2000)) * time.Millisecond)
	}
	s.Heal()
	close(stop)
	wg.Wait()

	want, err := s.ResourceVersions(configMaps, "")
	require.NoError(t, err)
	for _, rv := range []string{"", "0", s.ResourceVersion()} {
		all, status := list(t, s, "resourceVersion", rv)
		require.Nil(t, status)
		got := map[string]string{}
		for _, o := range all.Items {
			got[o.Namespace+"/"+o.Name] = o.ResourceVersion
		}
		require.Equal(t, want, got)
	}
	resp, err := client.Get(s.URL() + configMapsPath + "?watch=1&timeoutSeconds=1")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Len(t, watchedTexts(t, resp.Body), len(want))
}
