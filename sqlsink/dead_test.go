package sqlsink_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/stretchr/testify/require"
)

// A row that is refused too often is a dead letter. Its informer goes on, and a restart knows the
// dead letter, whether it lists or goes on from the checkpoint.
func TestDeadLetterIsKnownAfterARestart(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		cluster := newCluster(t, 20)
		begin := func() running { return startWith(t, cluster, address, 2) }
		r := begin()
		path, isFile := strings.CutPrefix(address, "sqlite:")
		if isFile {
			execute(t, path, `CREATE TRIGGER beware BEFORE INSERT ON objects WHEN new.name = 'bad' BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
		} else {
			query(t, address, `ALTER TABLE objects ADD CONSTRAINT not_this_one CHECK (name <> 'bad')`)
		}
		create(t, cluster, "bad")
		create(t, cluster, "good")
		letters := func() []informer.DeadLetter { return r.informer.DeadLetters() }
		require.Eventually(t, func() bool { return len(letters()) == 1 }, soon, 10*time.Millisecond)
		before := letters()[0]
		require.Equal(t, "ns/bad", before.Key)
		for _, compacted := range []bool{false, true} {
			require.NoError(t, r.stop())
			if compacted {
				create(t, cluster, "later")
				cluster.Compact()
			}
			r = begin()
			require.Eventually(t, func() bool { return r.informer.Status().Synced }, soon, 10*time.Millisecond)
			require.Len(t, letters(), 1)
			require.Equal(t, before.Key, letters()[0].Key)
		}
		require.NoError(t, r.stop())
	})
}

// redeliver tries all dead letters of an informer again.
func redeliver(ctx context.Context, i informer.ResourceVersionInformer) error {
	var keys []string
	for _, letter := range i.DeadLetters() {
		keys = append(keys, letter.Key)
	}
	if len(keys) == 0 {
		return nil // without keys, everything would be delivered again
	}
	return i.Redeliver(ctx, informer.RedeliverOptions{Keys: keys})
}

// A removal and an addition that are dead letters are tried again on demand, once the database takes
// them.
func TestDeadLettersAreTriedAgainOnDemand(t *testing.T) {
	overBoth(t, func(t *testing.T, address string) {
		cluster := newCluster(t, 20)
		r := startWith(t, cluster, address, 1)
		require.Eventually(t, func() bool { return r.informer.Status().Synced }, soon, 10*time.Millisecond)
		path, isFile := strings.CutPrefix(address, "sqlite:")
		forbid, allow := `CREATE TABLE bills (cluster text, "group" text, resource text, namespace text, name text, uid text,
			FOREIGN KEY (cluster, "group", resource, namespace, name, uid) REFERENCES objects);
			INSERT INTO bills SELECT cluster, "group", resource, namespace, name, uid FROM objects WHERE name = 'pod-1';
			ALTER TABLE objects ADD CONSTRAINT not_this_one CHECK (name <> 'bad')`,
			`DROP TABLE bills; ALTER TABLE objects DROP CONSTRAINT not_this_one`
		run := func(statements string) { psql(t, address, statements) }
		if isFile {
			run = func(statements string) { execute(t, path, statements) }
			forbid, allow = `CREATE TRIGGER bill BEFORE DELETE ON objects BEGIN SELECT RAISE(ABORT, 'it has a bill'); END;
				CREATE TRIGGER beware BEFORE INSERT ON objects WHEN new.name = 'bad' BEGIN SELECT RAISE(ABORT, 'not this one'); END`,
				`DROP TRIGGER bill; DROP TRIGGER beware`
		}
		run(forbid)
		require.NoError(t, cluster.Delete(pods, "ns", "pod-1"))
		create(t, cluster, "bad")
		require.Eventually(t, func() bool { return len(r.informer.DeadLetters()) == 2 }, soon, 10*time.Millisecond)
		run(allow)
		require.NoError(t, redeliver(t.Context(), r.informer))
		require.Empty(t, r.informer.DeadLetters())
		requireVerified(t, r.sink, cluster)
		require.NoError(t, redeliver(t.Context(), r.informer))
		require.NoError(t, r.stop())
	})
}
