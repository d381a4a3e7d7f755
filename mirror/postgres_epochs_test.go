package main

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// at returns a context with an epoch.
func at(t *testing.T, epoch int64) context.Context { return informer.WithEpoch(t.Context(), epoch) }

// claim makes a database the owner of a place under an epoch.
func claim(t *testing.T, db *postgres, of place, epoch int64) {
	t.Helper()
	require.NoError(t, db.Seed(at(t, epoch), informer.NewResourceVersionStorage(), of))
}

// requireStale demands the error of an epoch that is not the stored one.
func requireStale(t *testing.T, err error, unit string, epoch, stored int64) {
	t.Helper()
	stale := (*staleEpochError)(nil)
	require.ErrorAs(t, err, &stale)
	require.ErrorIs(t, err, shards.ErrStaleEpoch)
	require.Equal(t, staleEpochError{unit, epoch, stored, stale.err}, *stale)
}

// What comes with another epoch than the stored one is refused, whatever it is. Only a claim stores
// a newer one.
func TestPostgresRefusesStaleEpochs(t *testing.T) {
	t.Parallel()
	address := newPostgresAddress(t)
	one, two := openTestPostgres(t, address, false), openTestPostgres(t, address, false)
	here, there := place{cluster: "here", resource: pods, group: "all"}, place{cluster: "there", resource: pods, group: "all"}
	requireStale(t, one.Apply(at(t, 1), []change{put(here, "ns", "a", "1", "10")}), "here/all", 1, -1)
	claim(t, one, here, 1)
	claim(t, one, there, 7)
	require.NoError(t, one.Apply(at(t, 1), []change{put(here, "ns", "a", "1", "10")}))
	require.NoError(t, one.SaveCheckpoint(at(t, 1), here, "server", write("one")))
	require.NoError(t, one.Apply(at(t, 7), []change{put(there, "ns", "a", "1", "10")}))

	// The new owner claims the unit before it has anything to write.
	seen := informer.NewResourceVersionStorage()
	require.NoError(t, two.Seed(at(t, 2), seen, here))
	require.Equal(t, 1, seen.Len())
	requireStale(t, one.Apply(at(t, 1), []change{put(here, "ns", "b", "2", "11")}), "here/all", 1, 2)
	requireStale(t, one.Apply(at(t, 1), []change{{kind: dropResource, place: here}}), "here/all", 1, 2)
	requireStale(t, one.SaveCheckpoint(at(t, 1), here, "server", write("late")), "here/all", 1, 2)
	requireStale(t, one.Seed(at(t, 1), informer.NewResourceVersionStorage(), here), "here/all", 1, 2)
	_, err := one.LoadCheckpoint(at(t, 1), here)
	requireStale(t, err, "here/all", 1, 2)
	require.Equal(t, map[string]string{"ns/a": "10"}, seeded(t, two, here))

	// Nobody else is affected, and whoever has the newest epoch goes on.
	require.NoError(t, one.Apply(at(t, 7), []change{put(there, "ns", "b", "2", "11")}))
	require.NoError(t, two.Apply(at(t, 2), []change{put(here, "ns", "b", "2", "11")}))
	loaded, err := two.LoadCheckpoint(at(t, 2), here)
	require.NoError(t, err)
	text, err := io.ReadAll(loaded)
	require.NoError(t, err)
	require.NoError(t, loaded.Close())
	require.Equal(t, "one", string(text))

	// A batch with a newer epoch than the stored one is refused too: the claim was lost.
	requireStale(t, one.Apply(at(t, 3), []change{put(here, "ns", "c", "3", "12")}), "here/all", 3, 2)
	claim(t, one, here, 3)
	require.NoError(t, one.Apply(at(t, 3), []change{put(here, "ns", "c", "3", "12")}))
	requireStale(t, two.Apply(at(t, 2), []change{put(here, "ns", "d", "4", "13")}), "here/all", 2, 3)
	require.Equal(t, map[string]string{"ns/a": "10", "ns/b": "11", "ns/c": "12"}, seeded(t, two, here))
}

// A writer that stalls in the midst of its transaction does not keep the next owner waiting, and
// writes nothing when it goes on.
func TestStalledWriterIsPassedBy(t *testing.T) {
	t.Parallel()
	address := newPostgresAddress(t)
	one, two := openTestPostgres(t, address, false), openTestPostgres(t, address, false)
	here := place{cluster: "here", resource: pods}
	claim(t, one, here, 1)
	require.NoError(t, one.Apply(at(t, 1), []change{put(here, "ns", "a", "1", "10")}))
	epoch := int64(2)
	takeOver := func(epoch int64) {
		t.Helper()
		began := time.Now()
		require.NoError(t, two.Seed(at(t, epoch), informer.NewResourceVersionStorage(), here))
		require.NoError(t, two.Apply(at(t, epoch), []change{put(here, "ns", "a", "1", fmt.Sprint(10+epoch))}))
		require.Less(t, time.Since(began), soon) // and not an error of lock_timeout
	}

	// While it brings its data.
	requireStale(t, one.SaveCheckpoint(at(t, 1), here, "server", func(io.Writer) error {
		takeOver(epoch)
		return nil
	}), here.unit(), 1, 2)

	// After it has taken the lock of the place, and after it has compared the epoch too.
	for _, fenced := range []bool{false, true} {
		epoch++
		stalled := stall(t, one, at(t, epoch-1), here, fenced)
		began := time.Now()
		takeOver(epoch)
		require.Less(t, time.Since(began), 15*time.Second, "the duration of a Lease")
		_, err := stalled.Exec(t.Context(), "COMMIT")
		require.Error(t, err)
		require.Equal(t, map[string]string{"ns/a": fmt.Sprint(10 + epoch)}, seeded(t, two, here))
	}
}

// stall begins a transaction of a place, and leaves it alone with its locks. The server does not
// end its session, as one whose last message has come in part.
func stall(t *testing.T, db *postgres, ctx context.Context, of place, fenced bool) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), db.pool.Config().ConnConfig)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), "BEGIN")
	require.NoError(t, err)
	require.NoError(t, db.lock(t.Context(), conn, []place{of}))
	if fenced {
		require.NoError(t, db.fence(ctx, conn, []place{of}))
	}
	return conn
}

// Two writers have a shard of the UIDs each. Whatever the order in which they write, and although
// one name is now that of an object of one and then that of an object of the other, the rows are in
// the end what the writers know.
func TestWritersOfTwoShards(t *testing.T) {
	t.Parallel()
	db := openTestPostgres(t, newPostgresAddress(t), false)
	whole := place{cluster: "here", resource: pods, group: "all"}
	var writers []place
	for _, shard := range (informer.Shard{}).Split(2) {
		of := whole
		of.shard = shard
		writers = append(writers, of)
	}
	uids := make([][]string, len(writers)) // three of each shard
	for i := 0; len(uids[0]) < 3 || len(uids[1]) < 3; i++ {
		uid := fmt.Sprint("uid-", i)
		w := 0
		if writers[1].shard.Includes("", uid) {
			w = 1
		}
		uids[w] = append(uids[w], uid)
	}
	ctx := at(t, 1)
	for _, w := range writers {
		claim(t, db, w, 1)
	}
	rapid.Check(t, func(r *rapid.T) {
		for _, w := range writers {
			require.NoError(r, db.Apply(ctx, []change{{kind: dropResource, place: w}}))
		}
		model := make([]map[string]change, len(writers)) // what each writer knows, by name
		for i := range model {
			model[i] = make(map[string]change)
		}
		for range rapid.IntRange(1, 12).Draw(r, "batches") {
			w := rapid.IntRange(0, len(writers)-1).Draw(r, "writer")
			var batch []change
			for range rapid.IntRange(1, 6).Draw(r, "changes") {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "name")
				if rapid.IntRange(0, 2).Draw(r, "kind") == 0 {
					batch = append(batch, change{kind: removeRow, place: writers[w], namespace: "ns", name: name})
					delete(model[w], name)
					continue
				}
				uid := rapid.SampledFrom(uids[w]).Draw(r, "uid")
				c := put(writers[w], "ns", name, uid, fmt.Sprint(rapid.IntRange(1, 99).Draw(r, "version")))
				batch = append(batch, c)
				model[w][name] = c
			}
			require.NoError(r, db.Apply(ctx, batch))
		}
		for w, of := range writers {
			found := make(map[string]change)
			require.NoError(r, db.Objects(ctx, of, func(c change) error {
				found[c.name] = c
				return nil
			}))
			require.Equal(r, model[w], found)
			known := informer.NewResourceVersionStorage()
			require.NoError(r, db.Seed(ctx, known, of))
			require.Equal(r, len(model[w]), known.Len())
		}
	})
}

// A shard of namespaces touches no row of another one: not when it forgets old versions, nor when
// it forgets everything.
func TestShardsOfNamespaces(t *testing.T) {
	t.Parallel()
	db := openTestPostgres(t, newPostgresAddress(t), false)
	ctx := at(t, 1)
	var writers []place
	for _, shard := range (informer.Shard{Key: informer.ShardByNamespace}).Split(2) {
		writers = append(writers, place{cluster: "here", resource: pods, shard: shard})
	}
	want := make([]map[string]string, len(writers))
	for w, of := range writers {
		claim(t, db, of, 1)
		want[w] = make(map[string]string)
		for i := range 20 {
			if namespace := fmt.Sprint(i, "-namespace"); of.shard.Includes(namespace, "") {
				require.NoError(t, db.Apply(ctx, []change{put(of, namespace, "a", "1", "10")}))
				want[w][namespace+"/a"] = "10"
			}
		}
		require.NotEmpty(t, want[w])
	}
	require.NoError(t, db.SaveCheckpoint(ctx, writers[1], "server", write("kept")))
	later := writers[0]
	later.resource.Version = "v2"
	require.NoError(t, db.Apply(ctx, []change{{kind: dropOldVersions, place: later}}))
	require.Empty(t, seeded(t, db, writers[0]))
	require.NoError(t, db.Apply(ctx, []change{{kind: dropResource, place: writers[0]}}))
	require.Equal(t, want[1], seeded(t, db, writers[1]))
	_, err := db.LoadCheckpoint(ctx, writers[0])
	require.Error(t, err)
	loaded, err := db.LoadCheckpoint(ctx, writers[1])
	require.NoError(t, err)
	require.NoError(t, loaded.Close())
}
