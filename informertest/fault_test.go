package informertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
)

// inject injects a fault by its text.
func inject(t tester, s *informertest.Server, text string) (heal func()) {
	t.Helper()
	f, err := informertest.ParseFault(text)
	require.NoError(t, err)
	return s.Inject(f)
}

// try asks for config maps and returns the status code, the body as far as it came, and what went
// wrong.
func try(t tester, client *http.Client, s *informertest.Server, pairs ...string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+configMapsPath+"?"+values(pairs...).Encode(), nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// everyTransport runs a test with HTTP/1.1 and HTTP/2, on a loopback port and in memory.
func everyTransport(t *testing.T, test func(t *testing.T, s *informertest.Server, client *http.Client)) {
	for _, secure := range []bool{false, true} {
		for _, inMemory := range []bool{false, true} {
			t.Run(fmt.Sprintf("HTTP2=%v memory=%v", secure, inMemory), func(t *testing.T) {
				run := func(t *testing.T) {
					s := start(t, informertest.Options{TLS: secure, InMemory: inMemory})
					create(t, s, fiveObjects()...)
					test(t, s, httpClient(t, s))
				}
				if inMemory {
					synctest.Test(t, run)
				} else {
					run(t)
				}
			})
		}
	}
}

func TestFaultStatus(t *testing.T) {
	everyTransport(t, func(t *testing.T, s *informertest.Server, client *http.Client) {
		for _, code := range []int{400, 401, 403, 404, 410, 422, 429, 500, 503, 504} {
			heal := inject(t, s, fmt.Sprintf("%d retry-after=7 times=1", code))
			resp := open(t, s, configMapsPath, nil, "")
			require.Equal(t, code, resp.StatusCode)
			require.Equal(t, "7", resp.Header.Get("Retry-After"))
			var status metav1.Status
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&status))
			require.EqualValues(t, code, status.Code)
			require.EqualValues(t, 7, status.Details.RetryAfterSeconds)
			require.NotEmpty(t, status.Reason)
			got, refused := list(t, s)
			require.Nil(t, refused, "times=1")
			require.Len(t, got.Items, 5)
			heal()
			heal()
		}
	})
}

func TestFaultExpired(t *testing.T) {
	s := five(t)
	inject(t, s, "list page=later 410 times=1")
	first, status := list(t, s, "limit", "2")
	require.Nil(t, status)
	_, status = list(t, s, "limit", "2", "continue", first.Continue)
	require.Equal(t, metav1.StatusReasonExpired, status.Reason)
	rest, status := list(t, s, "continue", status.Continue)
	require.Nil(t, status)
	require.Equal(t, []string{"a/3", "b/1", "b/2"}, names(rest))

	inject(t, s, "page=first 410 times=1")
	_, status = list(t, s)
	require.Equal(t, metav1.StatusReasonExpired, status.Reason)
	require.Empty(t, status.Continue)

	inject(t, s, "watch 410 times=1")
	w := follow(t, s, configMapsPath, "resourceVersion", "6")
	w.want("ERROR Expired")
	w.wantEnd()
}

func TestFaultMatches(t *testing.T) {
	s := five(t)
	get, watchList := "/api/v1/namespaces/a/configmaps/1", []string{"watch", "1", "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan", "timeoutSeconds", "1"}
	for _, c := range []struct {
		match                           string
		list, watch, watchList, get, of bool
	}{
		{"", true, true, true, false, true},
		{"list", true, false, false, false, true},
		{"watch", false, true, false, false, true},
		{"watch-list", false, false, true, false, true},
		{"get", false, false, false, true, true},
		{"get watch", false, true, false, true, true},
		{"list get resource=v1/configmaps", true, false, false, true, false},
	} {
		heal := inject(t, s, c.match+" 503")
		for _, q := range []struct {
			path  string
			query []string
			met   bool
		}{
			{configMapsPath, nil, c.list},
			{configMapsPath, []string{"watch", "1", "timeoutSeconds", "1", "resourceVersion", "6"}, c.watch},
			{configMapsPath, watchList, c.watchList},
			{get, nil, c.get},
			{"/apis/example.com/v1/widgets", nil, c.list && c.of},
			{"/apis/example.com/v1", nil, false},
			{"/version", nil, false},
		} {
			resp := open(t, s, q.path, values(q.query...), "")
			want := http.StatusOK
			if q.met {
				want = http.StatusServiceUnavailable
			}
			require.Equal(t, want, resp.StatusCode, "%q: %s?%v", c.match, q.path, q.query)
			resp.Body.Close()
		}
		heal()
	}
}

func TestFaultCounts(t *testing.T) {
	s := five(t)
	met := func(n int) (out string) {
		for range n {
			resp := open(t, s, configMapsPath, nil, "")
			out += map[int]string{200: ".", 503: "x"}[resp.StatusCode]
			resp.Body.Close()
		}
		return out
	}
	inject(t, s, "list 503 skip=2 times=3")
	require.Equal(t, "..xxx..", met(7))
	inject(t, s, "no-bookmarks skip=1")
	inject(t, s, "watch 503")
	require.Equal(t, "..", met(2))
	s.Heal()
	heal := inject(t, s, "503")
	require.Equal(t, "xx", met(2))
	other := inject(t, s, "503 times=2")
	heal()
	require.Equal(t, "xx.", met(3))
	other()

	inject(t, s, "503 odds=4")
	odd := met(200)
	require.InDelta(t, 50, strings.Count(odd, "x"), 30)
	for _, seed := range []uint64{0, 7} {
		s = start(t, informertest.Options{Seed: seed})
		inject(t, s, "503 odds=4")
		require.Equal(t, seed == 0, odd == met(200))
	}
}

func TestFaultReset(t *testing.T) {
	everyTransport(t, func(t *testing.T, s *informertest.Server, client *http.Client) {
		inject(t, s, "list reset")
		_, _, err := try(t, client, s)
		require.Error(t, err)
		require.Equal(t, "list", s.Requests()[0].Verb)
		require.Zero(t, s.Requests()[0].Code)
		s.Heal()
		code, _, err := try(t, client, s)
		require.NoError(t, err)
		require.Equal(t, 200, code)
	})
}

func TestFaultRefuse(t *testing.T) {
	everyTransport(t, func(t *testing.T, s *informertest.Server, client *http.Client) {
		w := follow(t, s, configMapsPath, "resourceVersion", "6")
		heal := inject(t, s, "refuse")
		_, err := w.in.ReadByte()
		require.Error(t, err)
		s.ResetRequests()
		for range 3 {
			_, _, err = try(t, client, s)
			require.Error(t, err)
			if s.URL() == "http://localhost" || s.URL() == "https://localhost" {
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
			}
		}
		require.Empty(t, s.Requests())
		heal()
		code, _, err := try(t, client, s)
		require.NoError(t, err)
		require.Equal(t, 200, code)
		client.CloseIdleConnections()

		inject(t, s, "refuse skip=1 times=1")
		fresh := func() error {
			config := s.Config()
			// A dial function of its own keeps client-go from sharing the connections of another
			// client.
			dial := config.Dial
			if dial == nil {
				dial = (&net.Dialer{}).DialContext
			}
			config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				return dial(ctx, network, address)
			}
			client, err := rest.HTTPClientFor(config)
			require.NoError(t, err)
			defer client.CloseIdleConnections()
			_, _, err = try(t, client, s)
			return err
		}
		require.NoError(t, fresh())
		require.Error(t, fresh())
		require.NoError(t, fresh())
	})
}

func TestFaultCut(t *testing.T) {
	everyTransport(t, func(t *testing.T, s *informertest.Server, client *http.Client) {
		_, whole, err := try(t, client, s)
		require.NoError(t, err)
		for _, n := range []int{0, 1, 700, len(whole) - 1} {
			heal := inject(t, s, fmt.Sprintf("cut=%d", n))
			code, body, err := try(t, client, s)
			require.Error(t, err)
			require.Equal(t, 200, code)
			require.Equal(t, whole[:n], body)
			heal()
			heal = inject(t, s, fmt.Sprintf("cut=%d,clean", n))
			code, body, err = try(t, client, s)
			require.NoError(t, err)
			require.Equal(t, 200, code)
			require.Equal(t, whole[:n], body)
			heal()
		}
		inject(t, s, "cut=3,clean")
		inject(t, s, "503")
		code, body, err := try(t, client, s)
		require.NoError(t, err)
		require.Equal(t, 503, code)
		require.Len(t, body, 3)
	})
}

func TestFaultCutMeetsStreamsUnderWay(t *testing.T) {
	everyTransport(t, func(t *testing.T, s *informertest.Server, client *http.Client) {
		for _, c := range []struct {
			fault string
			clean bool
		}{{"cut=0", false}, {"cut=0,clean", true}, {"cut=10", false}, {"cut=10,clean", true}} {
			w := follow(t, s, configMapsPath, "resourceVersion", "6", "timeoutSeconds", "600")
			create(t, s, configMap("c", "1", "x"))
			f, ok := w.next()
			require.True(t, ok)
			require.Equal(t, "1", f.Object.GetName())
			heal := inject(t, s, c.fault+" times=1")
			require.NoError(t, s.Delete(configMaps, "c", "1"))
			rest, err := io.ReadAll(w.in)
			require.Equal(t, c.clean, err == nil, err)
			require.Contains(t, []string{"", `{"type":"D`}, string(rest))
			require.Equal(t, strings.HasPrefix(c.fault, "cut=10"), len(rest) > 0)
			heal()
			s.SetResourceVersion(6)
		}
	})
}

func TestFaultSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{InMemory: true})
		create(t, s, fiveObjects()...)
		client := httpClient(t, s)
		_, whole, err := try(t, client, s)
		require.NoError(t, err)
		for _, speed := range []int{3, 100, 1 << 20} {
			heal := inject(t, s, fmt.Sprintf("slow=%d", speed))
			begin := time.Now()
			_, body, err := try(t, client, s)
			require.NoError(t, err)
			require.Equal(t, whole, body)
			require.InDelta(t, float64(len(whole))/float64(speed), time.Since(begin).Seconds(), 1)
			heal()
		}

		// Healed in the midst, it comes at once; and whoever goes is not waited for.
		heal := inject(t, s, "slow=1")
		time.AfterFunc(10*time.Second, heal)
		begin := time.Now()
		_, body, err := try(t, client, s)
		require.NoError(t, err)
		require.Equal(t, whole, body)
		require.Equal(t, 10*time.Second, time.Since(begin))
		inject(t, s, "slow=1")
		client.Timeout = 5 * time.Second
		_, _, err = try(t, client, s)
		require.Error(t, err)
	})
}

func TestFaultHang(t *testing.T) {
	for _, secure := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, informertest.Options{InMemory: true, TLS: secure})
			create(t, s, fiveObjects()...)
			client := httpClient(t, s)
			w := follow(t, s, configMapsPath, "resourceVersion", "6", "allowWatchBookmarks", "true", "timeoutSeconds", "600")
			ended := follow(t, s, configMapsPath, "resourceVersion", "6", "timeoutSeconds", "60")
			synctest.Wait() // a watch that is not idle yet may send what comes before it hangs
			begin := time.Now()
			heal := inject(t, s, "hang")
			create(t, s, configMap("c", "1", "x"))
			time.AfterFunc(5*time.Minute, heal)
			w.want("ADDED 1 7")
			require.Equal(t, 5*time.Minute, time.Since(begin), "a stream under way hangs")
			ended.wantEnd()
			require.Equal(t, 5*time.Minute, time.Since(begin), "and its end as well")

			heal = inject(t, s, "hang")
			time.AfterFunc(time.Minute, heal)
			begin = time.Now()
			code, _, err := try(t, client, s)
			require.NoError(t, err)
			require.Equal(t, 200, code)
			require.Equal(t, time.Minute, time.Since(begin), "what hangs before its answer is answered")

			inject(t, s, "hang")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+configMapsPath, nil)
			require.NoError(t, err)
			_, err = client.Do(req)
			require.ErrorIs(t, err, context.DeadlineExceeded)

			// The server closes in spite of it.
			done := make(chan error)
			go func() {
				_, _, err := try(t, client, s)
				done <- err
			}()
			synctest.Wait()
			begin = time.Now()
			s.Close()
			require.Error(t, <-done)
			require.Zero(t, time.Since(begin))
		})
	}
}

func TestCloseIsNotHeldUpByFaults(t *testing.T) {
	for _, fault := range []string{"hang", "slow=1", "lag", "swap=1", "delay=1h", "goaway=1h"} {
		synctest.Test(t, func(t *testing.T) {
			s := informertest.NewServer(informertest.Options{InMemory: true, TLS: true})
			create(t, s, fiveObjects()...)
			inject(t, s, fault)
			create(t, s, configMap("c", "1", "x"))
			client := httpClient(t, s)
			done := make(chan error)
			for _, query := range [][]string{nil, {"watch", "1"}, {"resourceVersion", "7"}} {
				go func() {
					_, _, err := try(t, client, s, query...)
					done <- err
				}()
			}
			synctest.Wait()
			begin := time.Now()
			s.Close()
			require.Zero(t, time.Since(begin))
			for range 3 {
				if err := <-done; err != nil {
					require.False(t, errors.Is(err, context.Canceled), err)
				}
			}
		})
	}
}
