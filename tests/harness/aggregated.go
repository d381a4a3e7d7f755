package harness

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Aggregated are the pods of an API server that is not over etcd: a test gives each change its version,
// in any order, and several changes the same one. Wrap puts it before a simulated server, which has all
// else. The zero value has no pods.
type Aggregated struct {
	// Replays tells that a watch begins with an ADDED of every pod, whatever version it is to go on from,
	// and that the server has no other memory of what has happened.
	Replays bool

	mu      sync.Mutex
	pods    map[string]aggregatedPod
	log     []aggregatedEvent
	version int
	// changed is closed when there is more, and cut when the watches that are open end.
	changed, cut   chan struct{}
	lists, watches int
}

type aggregatedPod struct {
	uid     string
	version int
}

type aggregatedEvent struct {
	kind    string
	version int
	object  map[string]any
}

// Put creates or changes a pod, in a version.
func (a *Aggregated) Put(key string, version int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pods == nil {
		a.pods = map[string]aggregatedPod{}
	}
	kind, pod := "MODIFIED", a.pods[key]
	if pod.uid == "" {
		kind, pod.uid = "ADDED", fmt.Sprintf("%s-%d", strings.ReplaceAll(key, "/", "-"), len(a.log))
	}
	pod.version = version
	a.pods[key] = pod
	a.tellLocked(kind, version, podObject(key, pod))
}

// Delete deletes a pod, in a version.
func (a *Aggregated) Delete(key string, version int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pod := a.pods[key]
	pod.version = version
	delete(a.pods, key)
	a.tellLocked("DELETED", version, podObject(key, pod))
}

// Bookmark sends a bookmark of a version.
func (a *Aggregated) Bookmark(version int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tellLocked("BOOKMARK", version, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"resourceVersion": strconv.Itoa(version)},
	})
}

// tellLocked appends an event to the history.
func (a *Aggregated) tellLocked(kind string, version int, object map[string]any) {
	a.log = append(a.log, aggregatedEvent{kind, version, object})
	a.version = max(a.version, version)
	if a.changed != nil {
		close(a.changed)
	}
	a.changed = nil
}

// Cut ends the watches that are open. What the server does meanwhile is done before the next ones begin.
func (a *Aggregated) Cut(meanwhile func()) {
	a.mu.Lock()
	if a.cut != nil {
		close(a.cut)
	}
	a.cut = nil
	a.mu.Unlock()
	meanwhile()
}

// Resume has watches go on from a version from now on.
func (a *Aggregated) Resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Replays = false
}

// Versions is the version of each pod.
func (a *Aggregated) Versions() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	versions := map[string]string{}
	for key, pod := range a.pods {
		versions[key] = strconv.Itoa(pod.version)
	}
	return versions
}

// Asked returns how many lists and watches were asked for.
func (a *Aggregated) Asked() (lists, watches int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lists, a.watches
}

// Wrap puts a before a server.
func (a *Aggregated) Wrap(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		_, name, one := strings.Cut(query.Get("fieldSelector"), "metadata.name=")
		switch {
		case r.URL.Path != "/api/v1/pods" && !strings.HasSuffix(r.URL.Path, "/pods") || r.Method != http.MethodGet:
			server.ServeHTTP(w, r)
		case IsWatchList(r):
			FailWith(w, http.StatusBadRequest, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,"message":"no watch-lists"}`)
		case IsWatch(r):
			a.watch(w, r, query.Get("resourceVersion"))
		default:
			if !one {
				name = ""
			}
			a.list(w, name)
		}
	})
}

// list answers a list of all pods, or of that of a name.
func (a *Aggregated) list(w http.ResponseWriter, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(a.pods)) {
		if name == "" || strings.HasSuffix(key, "/"+name) {
			items = append(items, podObject(key, a.pods[key]))
		}
	}
	if name == "" {
		a.lists++
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}, "items": items,
	})
}

// watch answers a watch from a version.
func (a *Aggregated) watch(w http.ResponseWriter, r *http.Request, resourceVersion string) {
	w.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(w)
	after, _ := strconv.Atoi(resourceVersion)
	next := 0
	a.mu.Lock()
	a.watches++
	if a.cut == nil {
		a.cut = make(chan struct{})
	}
	cut := a.cut
	if a.Replays {
		next = len(a.log)
		keys := slices.SortedFunc(maps.Keys(a.pods), func(x, y string) int { return cmp.Compare(a.pods[x].version, a.pods[y].version) })
		for _, key := range keys {
			writeEvent(w, "ADDED", podObject(key, a.pods[key]))
		}
	}
	a.mu.Unlock()
	for {
		_ = flush.Flush()
		a.mu.Lock()
		for ; next < len(a.log); next++ {
			if e := a.log[next]; e.version > after || a.Replays {
				writeEvent(w, e.kind, e.object)
			}
		}
		if a.changed == nil {
			a.changed = make(chan struct{})
		}
		changed := a.changed
		a.mu.Unlock()
		_ = flush.Flush()
		select {
		case <-changed:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func writeEvent(w http.ResponseWriter, kind string, object map[string]any) {
	_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
}

func podObject(key string, pod aggregatedPod) map[string]any {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		panic(err)
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
		"namespace": name.Namespace, "name": name.Name, "uid": pod.uid, "resourceVersion": strconv.Itoa(pod.version),
	}}
}
