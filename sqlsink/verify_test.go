package sqlsink_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/sqlsink"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// listOf lists a cluster.
func listOf(t *testing.T, cluster *informertest.Server) cache.ListerWatcher {
	t.Helper()
	factory, err := informer.NewDynamicListerWatcherFactory(cluster.Config())
	require.NoError(t, err)
	return factory.ForResource("", pods)
}

// Every way in which rows may differ from a cluster is found, and nothing else.
func TestVerifyFindsWhatDiffers(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		cluster := newCluster(t, 50)
		r := start(t, cluster, address)
		requireVerified(t, r.sink, cluster)
		require.NoError(t, r.stop())

		changes := []string{
			`DELETE FROM objects WHERE name = 'pod-1'`,
			`UPDATE objects SET resource_version = '1' WHERE name = 'pod-2'`,
			`UPDATE objects SET uid = 'another' WHERE name = 'pod-3'`,
			`UPDATE objects SET object = '{"a":1}' WHERE name = 'pod-4'`,
			`UPDATE objects SET resource_version = '999999' WHERE name = 'pod-5'`, // a state that the cluster has lost
			`UPDATE objects SET name = 'gone', resource_version = '1' WHERE name = 'pod-6'`,
		}
		if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
			execute(t, path, changes...)
		} else {
			psql(t, address, strings.Join(changes, ";"))
		}
		sink := opened(t, sqlsink.Config{Address: address})
		here := sink.Place("here", pods)
		report, err := here.Verify(t.Context(), listOf(t, cluster), sqlsink.VerifyOptions{PageSize: 7, Patience: time.Millisecond})
		require.NoError(t, err)
		require.Equal(t, 50, report.Objects)
		require.Equal(t, 49, report.Rows)
		var found []string
		for _, d := range report.Differences {
			found = append(found, d.Key+": "+d.Reason[:min(len(d.Reason), 24)])
		}
		require.Equal(t, []string{
			"ns/gone: there is no object",
			"ns/pod-1: there is no row",
			"ns/pod-2: the row has resource ver",
			"ns/pod-3: the row has UID another,",
			`ns/pod-4: the row has {"a":1}, the`,
			"ns/pod-5: the row has resource ver",
			"ns/pod-6: there is no row",
		}, found)

		// What the informer does not keep is not compared.
		for key := range stored(t, here) {
			require.NoError(t, write(t.Context(), here, removed("ns", strings.TrimPrefix(key, "ns/"))))
		}
		for i := range 50 {
			pod, err := cluster.Get(pods, "ns", fmt.Sprint("pod-", i))
			require.NoError(t, err)
			unstructured.RemoveNestedField(pod.Object, "spec", "nodeName")
			require.NoError(t, write(t.Context(), here, informer.Event{Type: informer.Added, Key: "ns/" + pod.GetName(), Object: pod, ResourceVersion: pod.GetResourceVersion()}))
		}
		report, err = here.Verify(t.Context(), listOf(t, cluster), sqlsink.VerifyOptions{Prune: []string{"spec.nodeName"}})
		require.NoError(t, err)
		require.Empty(t, report.Differences)
	})
}

// A second row of a name is found, before or behind the one that is equal.
func TestVerifyFindsSecondRows(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	cluster := newCluster(t, 3)
	r := start(t, cluster, address)
	requireVerified(t, r.sink, cluster)
	for name, uid := range map[string]string{"pod-0": "!", "pod-1": "~"} {
		psql(t, address, fmt.Sprintf(`INSERT INTO objects (cluster, "group", version, resource, namespace, name, uid, resource_version, namespace_hash, uid_hash, object)
			SELECT cluster, "group", version, resource, namespace, name, '%s', '1', namespace_hash, uid_hash, object FROM objects WHERE name = '%s'`, uid, name))
	}
	report, err := r.sink.Place("here", pods).Verify(t.Context(), listOf(t, cluster), sqlsink.VerifyOptions{Patience: time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, r.stop())
	require.Len(t, report.Differences, 2)
	for i, d := range report.Differences {
		require.Equal(t, fmt.Sprint("ns/pod-", i), d.Key)
		require.Contains(t, d.Reason, "the row has resource version 1, the object ")
	}
}

// A cluster that is another one altogether ends the comparison early, and so does the end of the
// context.
func TestVerifyEnds(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
		pages := &pagesOf{pages: 10, size: 300}
		report, err := here.Verify(t.Context(), pages, sqlsink.VerifyOptions{Patience: time.Hour})
		require.NoError(t, err)
		require.Len(t, report.Differences, 1200)
		require.Equal(t, 4, pages.asked)

		pages = &pagesOf{pages: 1, size: 1}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("enough")
		time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
		_, err = here.Verify(ctx, pages, sqlsink.VerifyOptions{Patience: time.Hour})
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "verifying here pods: ")
	})
}

// A row of an object that the cluster does not have differs from it, although it is newer than the
// list: the cluster, asked by its name, has lost it.
func TestVerifyOfAnEmptyList(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
		require.NoError(t, write(t.Context(), here, put("a", "101"), put("b", "99")))
		report, err := here.Verify(t.Context(), &pagesOf{pages: 1}, sqlsink.VerifyOptions{Patience: time.Millisecond})
		require.NoError(t, err)
		require.Equal(t, sqlsink.VerifyReport{Rows: 2, Differences: []sqlsink.Difference{
			{Key: "ns/a", Reason: "there is no object"}, {Key: "ns/b", Reason: "there is no object"}}}, report)
	})
}

// Rows that are newer than a list because the objects change, or are created, meanwhile do not differ,
// although they are newer again whenever they are read.
func TestVerifyOfObjectsThatChangeMeanwhile(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		here := opened(t, sqlsink.Config{Address: address}).Place("here", pods)
		busy := &busyList{t: t, at: here, version: 100}
		report, err := here.Verify(t.Context(), busy, sqlsink.VerifyOptions{Patience: time.Nanosecond})
		require.NoError(t, err)
		require.Equal(t, sqlsink.VerifyReport{Objects: 1, Rows: 2}, report)
	})
}

// busyList lists the objects of a cluster that writes both anew before the answer is there.
type busyList struct {
	t       *testing.T
	at      sqlsink.Place
	version int
}

func (b *busyList) List(options metav1.ListOptions) (runtime.Object, error) {
	list := &unstructured.UnstructuredList{}
	list.SetResourceVersion(fmt.Sprint(b.version))
	for _, name := range []string{"old", "new"} {
		if options.FieldSelector == "" && name == "old" || strings.Contains(options.FieldSelector, name) {
			list.Items = append(list.Items, *put(name, fmt.Sprint(b.version)).Object.(*unstructured.Unstructured))
		}
	}
	b.version++
	newer := fmt.Sprint(b.version)
	require.NoError(b.t, write(b.t.Context(), b.at, put("old", newer), put("new", newer)))
	return list, nil
}

// The comparison reads each row a few times, also before the table is analyzed for the first time. As
// often for each page would take as long as the square of the rows.
func TestVerifyBeforeTheFirstAnalyze(t *testing.T) {
	t.Parallel()
	address := postgresAddress(t)
	sink := open(t, sqlsink.Config{Address: address})
	psql(t, address, `ALTER TABLE objects SET (autovacuum_enabled = off)`)
	const pages, size = 20, 100
	for page := range pages {
		var events []informer.Event
		for i := range size {
			events = append(events, put(fmt.Sprint(page, "-", i), "10"))
		}
		require.NoError(t, write(t.Context(), sink.Place("here", pods), events...))
	}
	before := rowsRead(t, sink, address)
	sink = open(t, sqlsink.Config{Address: address})
	report, err := sink.Place("here", pods).Verify(t.Context(), &pagesOf{pages: pages, size: size}, sqlsink.VerifyOptions{PageSize: size})
	require.NoError(t, err)
	require.Empty(t, report.Differences)
	require.Equal(t, pages*size, report.Rows)
	require.Less(t, rowsRead(t, sink, address)-before, 5*pages*size)
}

// rowsRead closes a database, and returns how many entries of the indexes of its table were read.
func rowsRead(t *testing.T, sink *sqlsink.Sink, address string) int {
	t.Helper()
	require.NoError(t, sink.Close())
	require.Eventually(t, func() bool { // a session counts when it ends
		return query(t, address, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)[0] == "0"
	}, soon, 10*time.Millisecond)
	read, err := strconv.Atoi(query(t, address, `SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'objects'`)[0])
	require.NoError(t, err)
	return read
}

// pagesOf lists objects that have no rows.
type pagesOf struct{ pages, size, asked int }

func (p *pagesOf) List(options metav1.ListOptions) (runtime.Object, error) {
	list := &unstructured.UnstructuredList{}
	list.SetResourceVersion("100")
	for i := range p.size {
		list.Items = append(list.Items, *put(fmt.Sprint(p.asked, "-", i), "10").Object.(*unstructured.Unstructured))
	}
	if p.asked++; p.asked < p.pages && options.FieldSelector == "" {
		list.SetContinue("more")
	}
	return list, nil
}
