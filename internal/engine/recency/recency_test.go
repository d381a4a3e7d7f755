package recency_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/internal/engine/recency"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

func TestStale(t *testing.T) {
	for _, c := range []struct {
		deletion           bool
		v, known, observed string
		told, want         bool
	}{
		{v: "8", known: "7", observed: "7", want: false},
		{v: "7", known: "7", observed: "7", want: true},
		{v: "6", known: "7", observed: "7", want: true},
		{v: "8", known: "7", observed: "7", deletion: true, want: false},
		{v: "7", known: "7", observed: "7", deletion: true, want: false}, // it carries the state that it ended
		{v: "6", known: "7", observed: "7", deletion: true, want: true},
		// The server may have gone back to 5.
		{v: "6", known: "7", observed: "5", want: false},
		{v: "7", known: "7", observed: "5", want: false},
		{v: "6", known: "7", observed: "5", deletion: true, want: false},
		{v: "6", known: "7", observed: "5", told: true, want: true},
		{v: "6", known: "7", observed: "5", told: true, deletion: true, want: true},
		// Versions without an order.
		{v: "x", known: "x", observed: "x", want: true},
		{v: "x", known: "y", observed: "y", want: false},
		{v: "x", known: "x", observed: "x", deletion: true, want: false},
		{v: "", known: "", observed: "", want: false},
		{v: "6", known: "7", observed: "", want: true},
	} {
		told := func() bool { return c.told }
		v, known := keytable.Version{ResourceVersion: c.v}, keytable.Version{ResourceVersion: c.known}
		require.Equal(t, c.want, recency.Stale(c.deletion, v, known, c.observed, told), "%+v", c)
	}
	v, other := keytable.Version{ResourceVersion: "x", UID: "a"}, keytable.Version{ResourceVersion: "x", UID: "b"}
	require.False(t, recency.Stale(false, v, other, "", nil), "the same version of another object")
}

func TestTrust(t *testing.T) {
	var trust recency.Trust
	list := func(told string, replaced int, shown, version string) bool {
		trust.Begin(told, replaced)
		trust.Note(shown)
		return trust.End(version)
	}
	require.True(t, list("", 0, "7", "9"), "the first list")
	require.True(t, list("9", 0, "10", "12"), "what is new")
	require.False(t, list("12", 0, "11", "15"), "what the server has not told of")
	require.True(t, trust.Lost())
	require.True(t, list("12", 0, "11", "15"), "it is read once more only")
	require.False(t, trust.Lost())
	require.False(t, list("15", 0, "15", "17"), "the newest version that the server has told, of something else")
	require.True(t, list("15", 0, "15", "17"))
	require.False(t, list("15", 0, "16", "14"), "a list that is older than what the server has told")
	require.True(t, list("15", 0, "16", "14"))
	require.True(t, list("", 0, "3", "4"), "it is not certain what the server has told")
	trust.Begin("4", 1)
	require.True(t, trust.Lost(), "another cluster")
	trust.Begin("4", 1)
	require.True(t, trust.Lost(), "the list before was not read to its end")
	require.True(t, trust.End("4"))
	require.True(t, list("4", 1, "5", "6"))
}

// state is what the server had of an object. Its number is its alone.
type state struct {
	keytable.Version
	number int
}

// told is an event of a watch. A deletion has the state that it ended.
type told struct {
	key string
	state
	at       int
	deletion bool
}

// reader follows a server by the rules.
type reader struct {
	known      map[string]state
	observed   string
	tombstones recency.Tombstones
	covers     recency.Coverage
	trust      recency.Trust
}

func (r *reader) take(e told) {
	known, exists := r.known[e.key]
	if r.tombstones.Covers(e.Version) || exists && recency.Stale(e.deletion, e.Version, known.Version, r.observed, func() bool { return false }) {
		return
	}
	if e.deletion {
		r.tombstones.Add(e.Version)
		delete(r.known, e.key)
	} else {
		r.known[e.key] = e.state
	}
}

// list reports whether the list was trusted.
func (r *reader) list(objects map[string]state, version string) bool {
	r.tombstones.Clear()
	r.trust.Begin(r.covers.Claim(r.observed, 0), 0)
	r.covers.Begin(0)
	read := map[string]state{}
	for key, s := range objects {
		known, exists := r.known[key]
		switch same := exists && known.Version == s.Version; {
		case same && !r.trust.Lost():
			read[key] = known
		case same:
			read[key] = s
		default:
			r.trust.Note(s.ResourceVersion)
			read[key] = s
		}
	}
	if !r.trust.End(version) {
		return false
	}
	r.known, r.observed = read, version
	r.covers.End(true)
	return true
}

// A reader that keeps to the rules has what the server has, however often a proxy repeats events
// and the server is restored.
func TestNothingGoesBackInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects, backup := map[string]state{}, map[string]state{}
		version, backupVersion, states := 10, 10, 0
		var events []told // since the newest list
		taken := 0
		r := reader{known: map[string]state{}}
		put := func(key string) {
			version, states = version+1, states+1
			s := state{keytable.Version{ResourceVersion: strconv.Itoa(version), UID: objects[key].UID}, states}
			if s.UID == "" {
				s.UID = types.UID(fmt.Sprint("uid-", states))
			}
			objects[key] = s
			events = append(events, told{key: key, state: s, at: version})
		}
		take := func() {
			for ; taken < len(events); taken++ {
				r.take(events[taken])
				r.observed = strconv.Itoa(events[taken].at)
			}
		}
		list := func() {
			if !r.list(objects, strconv.Itoa(version)) {
				require.True(t, r.list(objects, strconv.Itoa(version)))
			}
			events, taken = nil, 0
		}
		drawKey := func(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key") }
		list()
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) { put(drawKey(t)) },
			"delete": func(t *rapid.T) {
				key := drawKey(t)
				s, exists := objects[key]
				if !exists {
					t.Skip("there is none")
				}
				version++
				if rapid.Bool().Draw(t, "carries the version of its end") {
					s.ResourceVersion = strconv.Itoa(version)
				}
				delete(objects, key)
				events = append(events, told{key: key, state: s, at: version, deletion: true})
			},
			"watch": func(*rapid.T) { take() },
			"repeat": func(t *rapid.T) {
				if taken == 0 {
					t.Skip("there is none")
				}
				before := maps.Clone(r.known)
				r.take(rapid.SampledFrom(events[:taken]).Draw(t, "event"))
				require.Equal(t, before, r.known)
			},
			"list":   func(*rapid.T) { list() },
			"backup": func(*rapid.T) { backup, backupVersion = maps.Clone(objects), version },
			"restore": func(t *rapid.T) {
				take()
				if version == backupVersion {
					t.Skip("nothing is lost")
				}
				objects, version = maps.Clone(backup), backupVersion
				put(fmt.Sprint("new-", states)) // in a version that the server gave to another state
				for range rapid.IntRange(0, 5).Draw(t, "changes") {
					put(drawKey(t))
				}
				list() // no watch goes on
			},
			"": func(t *rapid.T) {
				if taken == len(events) {
					require.Equal(t, objects, r.known)
					require.Equal(t, r.observed, r.covers.Claim(r.observed, 0))
				}
			},
		})
	})
}
