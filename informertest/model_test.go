package informertest_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/informertest"
)

// model is a server thought up with plain maps: for every resource version since the last
// compaction it holds the whole state, and beside it every write. Values are "on" or "off".
type model struct {
	server    *informertest.Server
	rv        int
	compacted int
	states    map[int]map[string]held
	writes    []write
	pages     *paging
}

// held is an object in the model.
type held struct {
	value string
	rv    int
}

type write struct {
	rv      int
	key     string
	was, is string // "": not there
}

// paging is a list under way.
type paging struct {
	rv    int
	token string
	got   map[string]held
}

func (m *model) now() map[string]held { return m.states[m.rv] }

// write notes a state that differs from the newest in one key.
func (m *model) write(key, value string) {
	state := maps.Clone(m.now())
	was := state[key].value
	m.rv++
	if value == "" {
		delete(state, key)
	} else {
		state[key] = held{value, m.rv}
	}
	m.states[m.rv] = state
	m.writes = append(m.writes, write{m.rv, key, was, value})
}

func drawObject(t *rapid.T) (namespace, name, value string) {
	return rapid.SampledFrom([]string{"a", "a-b", "b"}).Draw(t, "namespace"),
		rapid.SampledFrom([]string{"1", "10", "2", "x-1", "x.1"}).Draw(t, "name"),
		rapid.SampledFrom([]string{"on", "off"}).Draw(t, "value")
}

func (m *model) put(t *rapid.T) {
	namespace, name, value := drawObject(t)
	key := namespace + "/" + name
	old, known := m.now()[key]
	_, err := m.server.Create(configMaps, configMap(namespace, name, value))
	require.Equal(t, known, err != nil)
	if known {
		_, err = m.server.Update(configMaps, configMap(namespace, name, value))
		require.NoError(t, err)
	}
	if old.value != value {
		m.write(key, value)
	}
}

func (m *model) remove(t *rapid.T) {
	namespace, name, _ := drawObject(t)
	_, known := m.now()[namespace+"/"+name]
	err := m.server.Delete(configMaps, namespace, name)
	require.Equal(t, known, err == nil)
	if known {
		m.write(namespace+"/"+name, "")
	}
}

func (m *model) elsewhere(t *rapid.T) {
	_, err := m.server.Create(widgets, widget("a", fmt.Sprint("w", m.rv), 1))
	require.NoError(t, err)
	m.states[m.rv+1] = m.now()
	m.rv++
}

func (m *model) compact(*rapid.T) {
	m.server.Compact()
	m.compacted = m.rv
	maps.DeleteFunc(m.states, func(rv int, _ map[string]held) bool { return rv < m.compacted })
	m.writes = slices.DeleteFunc(m.writes, func(w write) bool { return w.rv <= m.compacted })
}

func (m *model) beginList(t *rapid.T) {
	rv := rapid.IntRange(max(1, m.compacted-2), m.rv+1).Draw(t, "rv")
	m.pages = &paging{rv: rv, got: map[string]held{}}
	m.turnPage(t, "resourceVersion", strconv.Itoa(rv))
}

func (m *model) nextPage(t *rapid.T) {
	if m.pages == nil {
		t.Skip("no list under way")
	}
	m.turnPage(t, "continue", m.pages.token)
}

func (m *model) turnPage(t *rapid.T, from ...string) {
	limit := rapid.IntRange(1, 4).Draw(t, "limit")
	page, status := list(t, m.server, append(from, "limit", strconv.Itoa(limit))...)
	switch {
	case m.pages.rv > m.rv:
		require.EqualValues(t, http.StatusGatewayTimeout, status.Code)
		m.pages = nil
		return
	case m.pages.rv < m.compacted:
		require.EqualValues(t, http.StatusGone, status.Code)
		m.pages = nil
		return
	}
	require.Nil(t, status)
	require.Equal(t, strconv.Itoa(m.pages.rv), page.ResourceVersion)
	for _, o := range page.Items {
		rv, err := strconv.Atoi(o.ResourceVersion)
		require.NoError(t, err)
		m.pages.got[o.Namespace+"/"+o.Name] = held{o.Data["value"], rv}
	}
	want := m.states[m.pages.rv]
	if m.pages.token = page.Continue; m.pages.token != "" {
		require.EqualValues(t, len(want)-len(m.pages.got), *page.RemainingItemCount)
		return
	}
	require.Equal(t, want, m.pages.got)
	m.pages = nil
}

func (m *model) watch(t *rapid.T) {
	since := rapid.IntRange(max(1, m.compacted-2), m.rv).Draw(t, "rv")
	pairs := []string{"resourceVersion", strconv.Itoa(since)}
	selective := rapid.Bool().Draw(t, "selective")
	if selective {
		pairs = append(pairs, "labelSelector", "value=on")
	}
	shown := func(value string) bool { return value == "on" || !selective && value != "" }
	w := follow(t, m.server, configMapsPath, pairs...)
	defer w.resp.Body.Close()
	if since < m.compacted {
		w.want("ERROR Expired")
		return
	}
	for _, e := range m.writes {
		if e.rv <= since {
			continue
		}
		kind := ""
		switch was, is := shown(e.was), shown(e.is); {
		case was && is:
			kind = "MODIFIED"
		case is:
			kind = "ADDED"
		case was:
			kind = "DELETED"
		default:
			continue
		}
		f, ok := w.next()
		require.True(t, ok)
		require.Equal(t, fmt.Sprint(kind, " ", e.key, " ", e.rv), fmt.Sprint(f.Type, " ", f.Object.GetNamespace()+"/"+f.Object.GetName(), " ", f.Object.GetResourceVersion()))
	}
}

func (m *model) check(t *rapid.T) {
	require.Equal(t, strconv.Itoa(m.rv), m.server.ResourceVersion())
	got, err := m.server.ResourceVersions(configMaps, "")
	require.NoError(t, err)
	want := map[string]string{}
	for key, o := range m.now() {
		want[key] = strconv.Itoa(o.rv)
	}
	require.Equal(t, want, got)
}

func TestServerEqualsItsModel(t *testing.T) {
	// Time is virtual: a list of the future waits.
	synctest.Test(t, func(t *testing.T) { rapid.Check(timeless{t}, equalsItsModel) })
}

// timeless hides from rapid that a test has a deadline, which a test in a bubble must not be asked
// for.
type timeless struct{ testing.TB }

func equalsItsModel(t *rapid.T) {
	m := &model{server: start(t, informertest.Options{InMemory: true}), rv: 1, compacted: 1, states: map[int]map[string]held{1: {}}}
	t.Repeat(map[string]func(*rapid.T){
		"put":       m.put,
		"put again": m.put,
		"remove":    m.remove,
		"elsewhere": m.elsewhere,
		"compact":   m.compact,
		"list":      m.beginList,
		"page":      m.nextPage,
		"watch":     m.watch,
		"":          m.check,
	})
}
