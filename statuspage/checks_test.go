package statuspage_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/leaf/redact"
	"github.com/rvinformer/informer/statuspage"
)

func TestReadyOnceAllHaveSyncedAndUntilItDrains(t *testing.T) {
	page, now := statuspage.New(), time.Now()
	require.Equal(t, "ok", get(t, page, http.StatusOK, "/readyz"))
	page.Add(ofPods("east"), with(unreachable(now))) // it has synced before
	require.Equal(t, "ok", get(t, page, http.StatusOK, "/readyz"))
	require.NoError(t, page.Ready(nil))
	remove := page.Add(ofPods("west"), with(listing(now)))
	want := "[-]informer/west/_/v1/pods/dynamic failed: not synced: Listing: 10 objects\n"
	require.Equal(t, want+"readyz check failed\n", get(t, page, http.StatusInternalServerError, "/readyz"))
	require.EqualError(t, page.Ready(nil), "informer/west/_/v1/pods/dynamic: not synced: Listing: 10 objects")
	require.Equal(t, "[+]ping ok\n[+]shutdown ok\n[+]informer/east/_/v1/pods/dynamic ok\n"+want+"readyz check failed\n",
		get(t, page, http.StatusInternalServerError, "/readyz?verbose"))
	remove()
	require.Equal(t, "[+]ping ok\n[+]shutdown ok\n[+]informer/east/_/v1/pods/dynamic ok\nreadyz check passed\n", get(t, page, http.StatusOK, "/readyz?verbose"))
	page.Drain()
	require.Equal(t, "[-]shutdown failed: the process is draining\nreadyz check failed\n", get(t, page, http.StatusInternalServerError, "/readyz"))
	require.Equal(t, "ok", get(t, page, http.StatusOK, "/livez"), "a process that drains lives")
}

// A process that has been ready for a minute stays ready when a cluster is added that cannot be
// reached.
func TestProcessThatWasReadyStaysReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := statuspage.New()
		ready := func(want int) string { return get(t, page, want, "/readyz?verbose") }
		for range 20 {
			ready(http.StatusOK) // it has no informers yet
			time.Sleep(10 * time.Second)
		}
		page.Add(ofPods("east"), with(current(time.Now())))
		remove := page.Add(ofPods("west"), with(listing(time.Now())))
		ready(http.StatusInternalServerError)
		remove()
		ready(http.StatusOK)
		time.Sleep(59 * time.Second)
		ready(http.StatusOK)
		remove = page.Add(ofPods("west"), with(listing(time.Now())))
		ready(http.StatusInternalServerError)
		remove()
		ready(http.StatusOK) // for a minute from here on
		time.Sleep(time.Minute)
		ready(http.StatusOK)

		dead := unreachable(time.Now())
		dead.Synced, dead.Condition.Since = false, time.Now()
		page.Add(ofPods("north"), with(dead))
		require.Contains(t, ready(http.StatusOK), "[+]informer/north/_/v1/pods/dynamic added later: ok\n")
		require.NoError(t, page.Ready(nil))
		require.Contains(t, get(t, page, http.StatusInternalServerError, "/readyz/informer/north"), "not synced: ServerUnreachable")
		page.Drain()
		ready(http.StatusInternalServerError)
		require.Error(t, page.Ready(nil))
	})
}

func TestChecksCanBeExcludedAndAskedForByName(t *testing.T) {
	page, now := statuspage.New(), time.Now()
	page.Add(ofPods("east"), with(current(now)))
	page.Add(ofPods("west"), with(listing(now)))
	page.Add(ofPods("western"), with(current(now)))
	west := "informer/west/_/v1/pods/dynamic"
	for _, path := range []string{
		"/readyz?exclude=" + west, "/readyz?exclude=informer/west", "/readyz?exclude=informer/west/", "/readyz?exclude=informer",
		"/readyz?exclude=ping&exclude=informer/west", "/readyz/informer/east", "/readyz/informer/western/_/v1/pods/dynamic", "/readyz/ping", "/readyz/shutdown", "/livez",
		"/livez/informer/west", "/healthz", "/healthz/ping", "/readyz/informer?exclude=informer/west",
	} {
		require.Equal(t, "ok", get(t, page, http.StatusOK, path), path)
	}
	for _, path := range []string{"/readyz", "/readyz/informer", "/readyz/informer/west", "/readyz/" + west, "/readyz?exclude=informer/east", "/readyz?exclude=informer/wes", "/readyz?exclude="} {
		require.Contains(t, get(t, page, http.StatusInternalServerError, path), west, path)
	}
	for _, path := range []string{"/readyz/nothing", "/readyz/informer/nothing", "/livez/shutdown", "/readyz/pin"} {
		get(t, page, http.StatusNotFound, path)
	}
	require.Equal(t, "[+]ping ok\n[+]shutdown ok\n[+]informer/east/_/v1/pods/dynamic ok\n[+]"+west+" excluded: ok\n[+]informer/western/_/v1/pods/dynamic ok\n"+
		"warn: some health checks cannot be excluded: no matches for \"etcd\"\nreadyz check passed\n", get(t, page, http.StatusOK, "/readyz?verbose&exclude=informer/west&exclude=etcd"))
}

func TestManyFailuresAreCountedAndNamedIfAsked(t *testing.T) {
	page, now := statuspage.New(), time.Now()
	for i := range 30 {
		page.Add(ofPods(fmt.Sprint(i)), with(listing(now)))
	}
	body := get(t, page, http.StatusInternalServerError, "/readyz")
	require.Equal(t, 20, strings.Count(body, "[-]"))
	require.Contains(t, body, "and 10 more\n")
	require.Equal(t, 30, strings.Count(get(t, page, http.StatusInternalServerError, "/readyz?verbose"), "[-]"))
	require.ErrorContains(t, page.Ready(nil), "and 10 more")
}

// hostileMessage has a sign of each form of a credential, and letters that are no ASCII.
func hostileMessage(i int) string {
	const signs = `ſ https://a:secret%d@b?token=c&code=d "password": "e" Authorization: Basic f --token g eyJ ghp_ glpat- LS0tLS1CRUdJTi PRIVATE KEY `
	return strings.Repeat(fmt.Sprintf(signs, i), 12)
}

// hostileCrowd is a page of n informers. A part of them has not synced. Each has a message of its
// own.
func hostileCrowd(n int) *statuspage.Page {
	page, now := statuspage.New(), time.Now()
	for i := range n {
		s := listing(now)
		s.Synced = i%2 == 0
		s.Condition.Message = hostileMessage(i)
		page.Add(ofPods(fmt.Sprint("cluster-", i)), with(s))
	}
	return page
}

func TestVerboseCheckOfManyInformersIsBounded(t *testing.T) {
	page := hostileCrowd(5000)
	body := get(t, page, http.StatusInternalServerError, "/readyz?verbose")
	require.Equal(t, 20+1000, strings.Count(body, "[-]"))
	require.Equal(t, 20, strings.Count(body, "failed: not synced: Listing: "))
	require.Equal(t, 1000, strings.Count(body, "[+]"))
	require.Contains(t, body, "and 1502 more ok\nand 1480 more\nreadyz check failed\n") // ping and shutdown are two checks
	require.Less(t, len(body), 256<<10)
	require.Equal(t, 20, strings.Count(get(t, page, http.StatusInternalServerError, "/readyz"), "[-]"))
	require.Contains(t, get(t, page, http.StatusInternalServerError, "/readyz/informer/cluster-4999"), "failed: not synced: Listing: ſ https://xxxxx@b", "each can be asked for")
}

// A probe describes a few failures, so that it does not redact the messages of all: that took 0.9
// ms for each. Allocations are compared, because time depends on what else the machine does.
func TestReadyzRedactsOnlyWhatItShows(t *testing.T) {
	page := hostileCrowd(10_000)
	probe := allocations(func() { get(t, page, http.StatusInternalServerError, "/readyz") })
	const some = 10
	redacting := allocations(func() {
		for i := range some {
			redact.Short(hostileMessage(i), 2<<10)
		}
	}) / some
	require.Less(t, probe, 500*redacting, "the messages of 5,000 unsynced informers take ten times as much")
}

// allocations is how many objects are allocated while f runs.
func allocations(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

func TestSearchFindsWhatIsRedactedAndRemembered(t *testing.T) {
	page := hostileCrowd(50)
	for range 3 {
		require.Equal(t, 50, ask(t, page, "?q=%C5%BF").Matching)
		require.Zero(t, ask(t, page, "?q=secret4").Matching)
		require.Equal(t, 1, ask(t, page, "?q=cluster-44").Matching)
	}
	for _, name := range []string{"q", "cluster", "resource"} {
		require.Contains(t, get(t, page, http.StatusBadRequest, "/?"+name+"="+strings.Repeat("a", 1025)), name+": at most 1024 bytes")
		get(t, page, http.StatusOK, "/?"+name+"="+strings.Repeat("a", 1024))
	}
}

// What makes an informer not live is a watch without progress, and nothing else.
func TestLiveWhileTheWatchMakesProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		at := func(ago time.Duration) time.Time { return now.Add(-ago) }
		for name, c := range map[string]struct {
			change func(s *informer.Status)
			dead   bool
		}{
			"bookmarks come":             {func(s *informer.Status) { s.LastContact = at(time.Minute) }, false},
			"nothing comes":              {func(s *informer.Status) { s.LastContact = at(36 * time.Minute) }, true},
			"not for so long":            {func(s *informer.Status) { s.LastContact = at(35 * time.Minute) }, false},
			"the server is down":         {func(s *informer.Status) { *s = unreachable(now) }, false},
			"it was down a moment ago":   {func(s *informer.Status) { s.LastContact, s.LastErrorTime = at(time.Hour), at(time.Minute) }, false},
			"it failed long ago, too":    {func(s *informer.Status) { s.LastContact, s.LastErrorTime = at(time.Hour), at(time.Hour) }, true},
			"a list waits for its turn":  {func(s *informer.Status) { s.LastContact, s.Phase = at(time.Hour), informer.PhaseListing }, false},
			"the server asked for pause": {func(s *informer.Status) { s.LastContact, s.Phase = at(time.Hour), informer.PhaseBackoff }, false},
			"the handler does not return": {func(s *informer.Status) {
				s.LastContact, s.Queued = at(time.Hour), 1
			}, false},
			"it was not started": {func(s *informer.Status) { *s = informer.Status{} }, false},
			"it was stopped":     {func(s *informer.Status) { s.LastContact, s.Phase = at(time.Hour), informer.PhaseStopped }, false},
		} {
			page, s := statuspage.New(), current(now)
			c.change(&s)
			page.Add(ofPods("east"), with(s))
			if !c.dead {
				require.Equal(t, "ok", get(t, page, http.StatusOK, "/livez"), name)
				require.NoError(t, page.Live(nil), name)
				continue
			}
			body := get(t, page, http.StatusInternalServerError, "/livez")
			require.Contains(t, body, "[-]informer/east/_/v1/pods/dynamic failed: the watch has made no progress for ", name)
			require.Contains(t, body, ": Current\nlivez check failed\n")
			require.Error(t, page.Live(nil))
			require.Equal(t, "ok", get(t, page, http.StatusOK, "/readyz"), "what it has can still be served")
			page.Grace = 2 * time.Hour
			require.Equal(t, "ok", get(t, page, http.StatusOK, "/livez"), name)
		}
	})
}

// Ready and Live have the type of controller-runtime's healthz.Checker.
var _, _ func(*http.Request) error = statuspage.New().Ready, statuspage.New().Live

func TestOnlyGetAndHeadAreServed(t *testing.T) {
	page := statuspage.New()
	page.Add(ofPods("east"), with(current(time.Now())))
	for _, path := range []string{"/", "/informer/east/_/v1/pods/dynamic", "/readyz", "/livez", "/healthz"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "BREW"} {
			w := httptest.NewRecorder()
			page.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			require.Equal(t, http.StatusMethodNotAllowed, w.Code)
			require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodHead, path, nil))
		require.Equal(t, http.StatusOK, w.Code)
	}
	for _, path := range []string{"/nothing", "/informer", "/informer/", "/informer/a/b/c/d/e", "/informer/east", "/lookup", "/readyzz", "//"} {
		get(t, page, http.StatusNotFound, path)
	}
}

func TestHeadersKeepOthersOut(t *testing.T) {
	page := statuspage.New()
	page.Add(ofPods("east"), with(listing(time.Now())))
	for _, path := range []string{"/", "/?format=json", "/?sort=x", "/informer/east/_/v1/pods/dynamic", "/readyz", "/livez", "/nothing"} {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		h := w.Header()
		require.Equal(t, "no-store", h.Get("Cache-Control"), path)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
		policy := h.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.Contains(t, policy, "frame-ancestors 'none'")
		require.NotContains(t, policy, "script")
		require.NotContains(t, policy, "unsafe")
		require.Empty(t, h.Get("Access-Control-Allow-Origin"))
	}
}

const hostile = `"><script>alert(1)</script>' onmouseover=x {{.}} javascript:x ../..`

func TestHostileNamesAreText(t *testing.T) {
	page, s := statuspage.New(), unreachable(time.Now())
	s.LastError = errors.New(hostile)
	s.Condition.Message = hostile + "\nsecond line"
	s.Checkpoint, s.ResourceVersion = hostile, hostile
	s.Synced = false
	page.Title = hostile
	page.Add(statuspage.Labels{Cluster: hostile, Group: hostile, Version: hostile, Resource: hostile, Informer: hostile}, with(s))
	a := ask(t, page, "")
	require.Len(t, a.Items, 1)
	require.Equal(t, hostile, a.Items[0].Cluster)
	address := "/informer/" + a.Items[0].Path
	require.NotContains(t, address, "<")
	query := "?q=%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%27%20onmouseover%3Dx%20%7B%7B.%7D%7D%20javascript%3Ax%20..%2F.."
	for _, path := range []string{"/", "/?q=%22%3E%3Cscript%3E", address, "/" + query, "/?cluster=%22%3E%3Cscript%3E&resource=%3Cscript%3E"} {
		body := get(t, page, http.StatusOK, path)
		require.NotContains(t, body, "<script", path)
		require.NotContains(t, body, `" onmouseover`, path)
		require.NotContains(t, body, "' onmouseover", path)
		require.NotContains(t, body, "ZgotmplZ", path)
	}
	require.Contains(t, get(t, page, http.StatusOK, "/"+query), "&lt;script&gt;alert(1)&lt;/script&gt;")
	for _, path := range []string{"/readyz", "/readyz?verbose"} {
		body := get(t, page, http.StatusInternalServerError, path)
		require.Equal(t, 1, strings.Count(body, "[-]"))
		require.NotContains(t, body, "\nsecond line", "a check is one line")
		require.Equal(t, "text/plain; charset=utf-8", typeOf(page, path))
	}
	require.Equal(t, "text/plain; charset=utf-8", typeOf(page, "/?sort=%3Cscript%3E"))
	require.Equal(t, "application/json", typeOf(page, "/?format=json"))
}

func typeOf(page http.Handler, path string) string {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Header().Get("Content-Type")
}

func TestCredentialsAreMasked(t *testing.T) {
	const secret = "hunter2secret"
	page, s := statuspage.New(), unreachable(time.Now())
	s.LastError = errors.New("Get https://admin:" + secret + "@host/api?access_token=" + secret + ": refused")
	s.Condition.Message = s.LastError.Error()
	s.SkippedError, s.Fallback, s.CheckpointError = s.LastError, s.LastError, fmt.Errorf("Authorization: Bearer %s%s", secret, secret)
	s.Checkpoint = "s3://key:" + secret + "@bucket"
	s.Synced = false
	page.Add(statuspage.Labels{Cluster: "https://admin:" + secret + "@east", Version: "v1", Resource: "pods"}, with(s))
	a := ask(t, page, "")
	require.Equal(t, "https://xxxxx@east", a.Items[0].Cluster)
	address := "/informer/" + a.Items[0].Path
	for _, path := range []string{"/", "/?format=json", address, address + "?format=json", "/readyz?verbose"} {
		code := http.StatusOK
		if strings.HasPrefix(path, "/readyz") {
			code = http.StatusInternalServerError
		}
		body := get(t, page, code, path)
		require.NotContains(t, body, secret, path)
		require.Contains(t, body, "refused")
	}
	require.ErrorContains(t, page.Ready(nil), "refused")
	require.NotContains(t, page.Ready(nil).Error(), secret)
	require.Zero(t, ask(t, page, "?q="+secret).Matching, "a search must not tell either")
}
