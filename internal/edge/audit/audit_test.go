package audit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/audit"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// event is a change of the cluster. Deleted tells that the object is gone; its version is the one
// that the event carries.
type event struct {
	at      uint64
	key     string
	version keytable.Version
	deleted bool
}

// cluster is a server, and an informer of it that is behind: both change whenever an audit asks one
// of them for something.
type cluster struct {
	*rand.Rand
	// endsOld has deletions carry the version of the state that they end.
	endsOld bool
	// expiries is how many later pages expire.
	expiries int
	pageSize int
	// still are keys that do not change.
	still map[string]bool

	version uint64
	objects map[string]keytable.Version
	log     []event
	// listed is the list whose pages are read.
	listed map[string]keytable.Version
	at     uint64

	copied  map[string]keytable.Version
	applied int // of log
	reached uint64
	deleted func(key, resourceVersion string) // nil beside no audit
	walking []string
	// listAgain is what a repair does.
	listAgain func()
}

func newCluster(r *rand.Rand, objects int) *cluster {
	c := &cluster{
		Rand: r, pageSize: 1 + r.IntN(10), endsOld: r.IntN(3) == 0, still: map[string]bool{}, version: 100,
		objects: map[string]keytable.Version{}, copied: map[string]keytable.Version{},
	}
	for n := range objects {
		c.put(fmt.Sprintf("a/%03d", n))
	}
	c.await(c.version)
	return c
}

func (c *cluster) put(key string) {
	c.version += 1 + c.Uint64N(3) // others write, too
	v := keytable.Version{ResourceVersion: strconv.FormatUint(c.version, 10), UID: c.objects[key].UID}
	if v.UID == "" {
		v.UID = types.UID(fmt.Sprint("uid-", c.version))
	}
	c.objects[key] = v
	c.log = append(c.log, event{at: c.version, key: key, version: v})
}

func (c *cluster) remove(key string) {
	v, ok := c.objects[key]
	if !ok {
		return
	}
	c.version += 1 + c.Uint64N(3)
	if !c.endsOld {
		v.ResourceVersion = strconv.FormatUint(c.version, 10)
	}
	delete(c.objects, key)
	c.log = append(c.log, event{at: c.version, key: key, version: v, deleted: true})
}

// live lets some time pass.
func (c *cluster) live() {
	for range c.IntN(4) {
		key := fmt.Sprintf("a/%03d", c.IntN(60))
		switch {
		case c.still[key]:
		case c.IntN(3) == 0:
			c.remove(key)
		default:
			c.put(key)
		}
	}
	for range c.IntN(4) {
		if c.applied < len(c.log) {
			c.await(c.log[c.applied].at)
		}
	}
}

// await has the informer take everything up to a version.
func (c *cluster) await(version uint64) {
	for ; c.applied < len(c.log) && c.log[c.applied].at <= version; c.applied++ {
		e := c.log[c.applied]
		if e.deleted {
			delete(c.copied, e.key)
			if c.deleted != nil {
				c.deleted(e.key, e.version.ResourceVersion)
			}
		} else {
			c.copied[e.key] = e.version
		}
	}
	c.reached = max(c.reached, version)
}

func (c *cluster) OnDeletion(deleted func(key, resourceVersion string)) (stop func()) {
	c.deleted = deleted
	return func() { c.deleted = nil }
}

func (c *cluster) ListAgain(context.Context) error {
	c.listAgain()
	return nil
}

func (c *cluster) Acknowledged() string { return strconv.FormatUint(c.reached, 10) }

func (c *cluster) Told() string { return c.Acknowledged() }

func (c *cluster) Await(_ context.Context, resourceVersion string) error {
	c.live()
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	c.await(version)
	return err
}

func (c *cluster) AwaitRead(context.Context) error { return nil }

func (c *cluster) News() (int64, bool) { return 0, true }

func (c *cluster) Page(_ context.Context, token string, each func(audit.Item)) (audit.Page, error) {
	if token == "" {
		c.listed, c.at = maps.Clone(c.objects), c.version
	} else if c.expiries > 0 && c.IntN(3) == 0 {
		c.expiries--
		return audit.Page{}, apierrors.NewResourceExpired("too old")
	}
	page := audit.Page{ResourceVersion: strconv.FormatUint(c.at, 10)}
	keys := slices.Sorted(maps.Keys(c.listed))
	from, _ := slices.BinarySearch(keys, token)
	for n, key := range keys[from:] {
		if n == c.pageSize {
			page.Continue = key
			break
		}
		c.live()
		each(audit.Item{Key: key, Version: c.listed[key], Bytes: 100})
	}
	return page, nil
}

func (c *cluster) Ask(_ context.Context, key string, each func(audit.Item)) (audit.Page, error) {
	c.live()
	if v, ok := c.objects[key]; ok {
		each(audit.Item{Key: key, Version: v})
	}
	return audit.Page{ResourceVersion: strconv.FormatUint(c.version, 10)}, nil
}

func (c *cluster) Len() int { return len(c.copied) }

func (c *cluster) Compare(key string, v keytable.Version) keytable.Comparison {
	own, ok := c.copied[key]
	return keytable.Comparison{Known: ok, SameVersion: ok && own.ResourceVersion == v.ResourceVersion, SameObject: ok && own.SameObject(v)}
}

func (c *cluster) Get(key string) (keytable.Version, bool) {
	v, ok := c.copied[key]
	return v, ok
}

func (c *cluster) LendFrom(cursor keytable.Cursor, _ int, visit func(key string, v *keytable.Binary)) keytable.Cursor {
	if cursor == 0 {
		c.walking = slices.Collect(maps.Keys(c.copied))
	}
	for range 1 + c.IntN(5) {
		if int(cursor) == len(c.walking) {
			return 0
		}
		if v, ok := c.copied[c.walking[cursor]]; ok {
			b := v.Binary()
			visit(c.walking[cursor], &b)
		}
		cursor++
	}
	c.live()
	return cursor
}

func (c *cluster) audit(bytesPerSecond int64) (api.AuditReport, error) {
	return audit.Run(context.Background(), audit.Options{Informer: c, Server: c, BytesPerSecond: bytesPerSecond, Repair: c.listAgain != nil})
}

// An audit finds what differs for good, and nothing else, however much changes meanwhile.
func TestAuditFindsJustWhatDiffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), rapid.IntRange(0, 60).Draw(t, "objects"))
		c.expiries = rapid.IntRange(0, 2).Draw(t, "expiries")
		var missing, stale, superfluous []string
		for n := range rapid.IntRange(0, 4).Draw(t, "missing") {
			key := fmt.Sprintf("a/%03d-missing", n)
			c.put(key)
			c.await(c.version)
			delete(c.copied, key)
			missing = append(missing, key)
		}
		for n := range rapid.IntRange(0, 4).Draw(t, "stale") {
			key := fmt.Sprintf("a/%03d-stale", n)
			c.put(key)
			c.await(c.version)
			old := c.copied[key]
			if n%2 == 0 {
				c.put(key)
				c.await(c.version)
			} else {
				old.UID = "another"
			}
			c.copied[key] = old
			stale = append(stale, key)
		}
		for n := range rapid.IntRange(0, 4).Draw(t, "superfluous") {
			key := fmt.Sprintf("b/%03d", n)
			c.copied[key] = keytable.Version{ResourceVersion: strconv.Itoa(50 + n)}
			superfluous = append(superfluous, key)
		}
		r, err := c.audit(0)
		require.NoError(t, err)
		require.Equal(t, missing, keysOf(r.Missing))
		require.Equal(t, stale, keysOf(r.Stale))
		require.Equal(t, superfluous, keysOf(r.Superfluous))
		require.Equal(t, []int{len(missing), len(stale), len(superfluous)}, []int{r.MissingCount, r.StaleCount, r.SuperfluousCount})
	})
}

// keysOf returns the keys that differ, in order.
func keysOf(differences []api.AuditDifference) (keys []string) {
	for _, d := range differences {
		keys = append(keys, d.Key)
	}
	slices.Sort(keys)
	return keys
}

func TestMoreDifferencesAreCountedOnly(t *testing.T) {
	c := newCluster(rand.New(rand.NewPCG(1, 0)), 0)
	for n := range 5 * audit.MaxDifferences {
		c.copied[fmt.Sprintf("b/%05d", n)] = keytable.Version{ResourceVersion: "7"}
	}
	r, err := c.audit(0)
	require.NoError(t, err)
	require.Equal(t, 5*audit.MaxDifferences, r.SuperfluousCount)
	require.Len(t, r.Superfluous, audit.MaxDifferences)
}

// counting counts how often the server is asked for one key.
type counting struct {
	*cluster
	asks int
}

func (c *counting) Ask(ctx context.Context, key string, each func(audit.Item)) (audit.Page, error) {
	c.asks++
	return c.cluster.Ask(ctx, key, each)
}

// The server is asked only for the first of many missing objects. An object that is deleted meanwhile
// is no difference all the same, whatever version its deletion carries.
func TestManyMissingObjectsAreNotAskedForOneByOne(t *testing.T) {
	const missing = 5 * audit.MaxDifferences
	for seed := range uint64(10) {
		c := &counting{cluster: newCluster(rand.New(rand.NewPCG(seed, 0)), 60)}
		for n := range missing { // the list shows them first
			c.put(fmt.Sprintf("a/!%04d", n))
		}
		c.await(c.version)
		for n := range missing {
			delete(c.copied, fmt.Sprintf("a/!%04d", n))
		}
		r, err := audit.Run(t.Context(), audit.Options{Informer: c.cluster, Server: c})
		require.NoError(t, err)
		require.Equal(t, missing, r.Differences())
		require.Equal(t, missing, r.MissingCount)
		require.LessOrEqual(t, c.asks, audit.MaxDifferences+100)
	}
}

// An informer that does not tell what it deletes is not believed about it.
func TestDeletionsThatAreNotToldAreAskedFor(t *testing.T) {
	const missing = 3 * audit.MaxDifferences
	c := &counting{cluster: newCluster(rand.New(rand.NewPCG(1, 0)), 0)}
	for n := range missing {
		c.put(fmt.Sprintf("b/%04d", n))
	}
	c.put("c/gone")
	c.await(c.version)
	clear(c.copied)
	r, err := audit.Run(t.Context(), audit.Options{Informer: silent{c.cluster}, Server: c})
	require.NoError(t, err)
	require.Equal(t, missing, r.Differences())
	require.Equal(t, missing+1, c.asks)
}

// silent is an informer that has a list delete something at once.
type silent struct{ *cluster }

func (s silent) OnDeletion(deleted func(key, resourceVersion string)) (stop func()) {
	deleted("", "")
	return func() {}
}

func (s silent) Await(ctx context.Context, resourceVersion string) error {
	s.remove("c/gone")
	return s.cluster.Await(ctx, resourceVersion)
}

func TestRepairedCountsAllThatDifferNoMore(t *testing.T) {
	const n = 3 * audit.MaxDifferences
	c := newCluster(rand.New(rand.NewPCG(1, 0)), 0)
	key := func(sort string, i int) string { return fmt.Sprintf("b/%s-%05d", sort, i) }
	for i := range n {
		for _, sort := range []string{"missing", "stale"} {
			c.still[key(sort, i)] = true
			c.put(key(sort, i))
		}
		c.copied[key("superfluous", i)] = keytable.Version{ResourceVersion: "7"}
	}
	c.await(c.version)
	for i := range n {
		delete(c.copied, key("missing", i))
		c.copied[key("stale", i)] = keytable.Version{ResourceVersion: "8", UID: "former"}
	}
	c.listAgain = func() {}
	r, err := c.audit(0)
	require.NoError(t, err)
	require.Equal(t, 3*n, r.Differences())
	require.Zero(t, r.Repaired)
	c.listAgain = func() { c.repairMost(key, n) }
	r, err = c.audit(0)
	require.NoError(t, err)
	require.Equal(t, 3*n, r.Differences())
	require.Equal(t, 3*n*9/10, r.Repaired)
	for _, found := range [][]api.AuditDifference{r.Missing, r.Stale, r.Superfluous} {
		for _, d := range found {
			require.Equal(t, !strings.HasSuffix(d.Key, "0"), d.Repaired, d.Key)
		}
	}
}

// repairMost repairs nine of ten keys that differ.
func (c *cluster) repairMost(key func(sort string, i int) string, n int) {
	for i := range n {
		if i%10 != 0 {
			c.copied[key("missing", i)] = c.objects[key("missing", i)]
			delete(c.copied, key("superfluous", i))
		}
		switch i % 10 {
		case 0:
		case 1: // the same version of another object
			c.copied[key("stale", i)] = keytable.Version{ResourceVersion: "8", UID: "latter"}
		case 2:
			delete(c.copied, key("stale", i))
		default:
			c.copied[key("stale", i)] = c.objects[key("stale", i)]
		}
	}
}

// nameless is a cluster whose list has an object without a readable key.
type nameless struct {
	*cluster
	asked []string
}

func (n *nameless) Page(ctx context.Context, token string, each func(audit.Item)) (audit.Page, error) {
	each(audit.Item{Unreadable: true})
	return n.cluster.Page(ctx, token, each)
}

func (n *nameless) Ask(ctx context.Context, key string, each func(audit.Item)) (audit.Page, error) {
	n.asked = append(n.asked, key)
	return n.cluster.Ask(ctx, key, each)
}

// An object whose key is not known may be any that the list does not show.
func TestObjectWithoutAKeyIsAskedFor(t *testing.T) {
	c := newCluster(rand.New(rand.NewPCG(1, 0)), 0)
	n := &nameless{cluster: c}
	c.put("b/lives")
	c.await(c.version)
	c.listed = nil
	c.copied["b/gone"] = keytable.Version{ResourceVersion: "7"}
	hidden := hiding{nameless: n, key: "b/lives"}
	r, err := audit.Run(t.Context(), audit.Options{Server: hidden, Informer: c})
	require.NoError(t, err)
	require.Equal(t, 1, r.Unreadable)
	require.Equal(t, 1, r.Differences())
	require.Equal(t, "b/gone", r.Superfluous[0].Key)
	require.ElementsMatch(t, []string{"b/gone", "b/lives"}, n.asked)
}

// hiding leaves one object out of the list.
type hiding struct {
	*nameless
	key string
}

func (h hiding) Page(ctx context.Context, token string, each func(audit.Item)) (audit.Page, error) {
	return h.nameless.Page(ctx, token, func(it audit.Item) {
		if it.Key != h.key {
			each(it)
		}
	})
}

// mixing gives each page a version of its own.
type mixing struct{ *cluster }

func (m mixing) Page(ctx context.Context, token string, each func(audit.Item)) (audit.Page, error) {
	page, err := m.cluster.Page(ctx, token, each)
	m.at++
	return page, err
}

func TestListOfSeveralVersionsIsRefused(t *testing.T) {
	c := newCluster(rand.New(rand.NewPCG(1, 0)), 30)
	c.pageSize = 10
	_, err := audit.Run(t.Context(), audit.Options{Server: mixing{c}, Informer: c})
	require.ErrorIs(t, err, audit.ErrMixed)
}

func TestErrorsOfTheServerAndTheInformerEndIt(t *testing.T) {
	c := newCluster(rand.New(rand.NewPCG(1, 0)), 30)
	refused := errors.New("refused")
	_, err := audit.Run(t.Context(), audit.Options{Server: refusing{c, refused}, Informer: c})
	require.ErrorIs(t, err, refused)
	c.copied["b/gone"] = keytable.Version{ResourceVersion: "7"}
	_, err = audit.Run(t.Context(), audit.Options{Server: c, Informer: stopping{c, refused}})
	require.ErrorIs(t, err, refused)
}

type refusing struct {
	*cluster
	err error
}

func (r refusing) Page(context.Context, string, func(audit.Item)) (audit.Page, error) {
	return audit.Page{}, r.err
}

type stopping struct {
	*cluster
	err error
}

func (s stopping) Await(context.Context, string) error { return s.err }
