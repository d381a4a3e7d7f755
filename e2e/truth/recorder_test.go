package truth

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/informertest/oracle"
)

// shared is the cluster of all tests. They do not run in parallel.
var shared *cluster.Cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx := context.Background()
	binaries, err := cluster.Build(ctx, "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared, err = cluster.Start(ctx, cluster.Options{Binaries: binaries})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	return m.Run()
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	t.Cleanup(cancel)
	shared.ShowLogs(t)
	return ctx
}

// follow begins to record the objects.
func follow(ctx context.Context, t *testing.T, objects *cluster.Objects) (*Recorder, *told) {
	t.Helper()
	recorder, err := Follow(ctx, shared.EtcdURL(), objects.Resource, objects.Namespace)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, recorder.Close()) })
	sink := &told{}
	recorder.Attach(sink)
	return recorder, sink
}

// told is a sink that folds what it is told into a map, and keeps the writes to one
// object each.
type told struct {
	mu      sync.Mutex
	objects map[string]cluster.Version
	writes  []oracle.Write
	others  int
	wrong   []string
}

func (s *told) Restored(_ string, state []oracle.Write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = map[string]cluster.Version{}
	for _, w := range state {
		s.objects[w.Key] = cluster.Version{UID: w.UID, ResourceVersion: w.ResourceVersion}
	}
}

func (s *told) Wrote(w oracle.Write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, existed := s.objects[w.Key]
	switch w.Type {
	case oracle.Other:
		s.others++
		return
	case oracle.Created:
		if existed {
			s.wrong = append(s.wrong, fmt.Sprintf("%v: it is there as %v", w, before))
		}
		s.objects[w.Key] = cluster.Version{UID: w.UID, ResourceVersion: w.ResourceVersion}
	case oracle.Updated, oracle.Deleted:
		if before.UID != w.UID {
			s.wrong = append(s.wrong, fmt.Sprintf("%v: it is there as %v", w, before))
		}
		s.objects[w.Key] = cluster.Version{UID: w.UID, ResourceVersion: w.ResourceVersion}
		if w.Type == oracle.Deleted {
			delete(s.objects, w.Key)
		}
	}
	s.writes = append(s.writes, w)
}

func (s *told) require(t *testing.T, want map[string]cluster.Version) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.wrong)
	require.Equal(t, want, s.objects)
}

func (s *told) types() (types []oracle.WriteType) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.writes {
		types = append(types, w.Type)
	}
	return types
}

// newest is the last write to a followed object, and how many there were to others.
func (s *told) newest() (last oracle.Write, others int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes[len(s.writes)-1], s.others
}

// requireTruth compares what was recorded with what the API server has.
func requireTruth(ctx context.Context, t *testing.T, recorder *Recorder, sink *told, objects *cluster.Objects) {
	t.Helper()
	_, err := recorder.Reach(ctx)
	require.NoError(t, err)
	want, err := objects.Versions(ctx)
	require.NoError(t, err)
	sink.require(t, want)
	versions := map[string]string{}
	for key, version := range want {
		versions[key] = version.ResourceVersion
	}
	require.Equal(t, versions, recorder.Versions())
}

func newPods(ctx context.Context, t *testing.T) *cluster.Objects {
	t.Helper()
	namespace, err := shared.CreateNamespace(ctx, "truth")
	require.NoError(t, err)
	pods, err := shared.Pods(namespace)
	require.NoError(t, err)
	return pods
}

func newWidgets(ctx context.Context, t *testing.T) *cluster.Objects {
	t.Helper()
	require.NoError(t, shared.CreateWidgetDefinition(ctx))
	namespace, err := shared.CreateNamespace(ctx, "truth")
	require.NoError(t, err)
	widgets, err := shared.Widgets(namespace)
	require.NoError(t, err)
	return widgets
}

func TestBuiltInAndCustomResourcesAreRecorded(t *testing.T) {
	for name, make := range map[string]func(context.Context, *testing.T) *cluster.Objects{"pods": newPods, "widgets": newWidgets} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			objects := make(ctx, t)
			require.NoError(t, objects.Fill(ctx, 3))
			recorder, sink := follow(ctx, t, objects)
			requireTruth(ctx, t, recorder, sink, objects)
			require.NoError(t, objects.Create(ctx, cluster.Name(3)))
			require.NoError(t, objects.Update(ctx, cluster.Name(3), "updated"))
			elsewhere := make(ctx, t)
			require.NoError(t, elsewhere.Create(ctx, cluster.Name(0)))
			requireTruth(ctx, t, recorder, sink, objects)
			require.Equal(t, []oracle.WriteType{oracle.Created, oracle.Updated}, sink.types())
			_, others := sink.newest()
			require.Positive(t, others)

			require.NoError(t, objects.Delete(ctx, cluster.Name(1)))
			requireTruth(ctx, t, recorder, sink, objects)
			last, _ := sink.newest()
			require.Equal(t, oracle.Deleted, last.Type)
			require.Equal(t, objects.Namespace+"/"+cluster.Name(1), last.Key)
			require.NotEqual(t, types.UID(""), last.UID)
		})
	}
}

func TestEtcdGoesAndComesBack(t *testing.T) {
	ctx := testContext(t)
	pods := newPods(ctx, t)
	recorder, sink := follow(ctx, t, pods)
	writer := pods.StartWriter(ctx, 20, time.Millisecond)
	defer writer.Stop()
	require.NoError(t, writer.Await(ctx, 50))
	require.NoError(t, shared.KillEtcd())
	require.NoError(t, shared.StartEtcd(ctx))
	require.NoError(t, writer.Await(ctx, 50))
	writer.Stop()
	requireTruth(ctx, t, recorder, sink, pods)
}

func TestEtcdIsRestored(t *testing.T) {
	ctx := testContext(t)
	pods := newPods(ctx, t)
	require.NoError(t, pods.Fill(ctx, 5))
	recorder, sink := follow(ctx, t, pods)
	then, err := pods.Versions(ctx)
	require.NoError(t, err)
	require.NoError(t, shared.KillEtcd())
	backup, err := shared.BackUpEtcd()
	require.NoError(t, err)
	require.NoError(t, shared.StartEtcd(ctx))
	writer := pods.StartWriter(ctx, 20, time.Millisecond)
	require.NoError(t, writer.Await(ctx, 50))
	writer.Stop()
	requireTruth(ctx, t, recorder, sink, pods)

	require.NoError(t, recorder.Restore(ctx, func() error {
		require.NoError(t, shared.KillAPIServer())
		require.NoError(t, shared.KillEtcd())
		require.NoError(t, shared.RestoreEtcd(backup))
		return shared.StartEtcd(ctx)
	}))
	sink.require(t, then)
	require.NoError(t, shared.StartAPIServer(ctx))
	require.NoError(t, pods.Delete(ctx, cluster.Name(0)))
	requireTruth(ctx, t, recorder, sink, pods)
}

// A recorder that lost writes must say so, and not wait for them.
func TestCompactionOfWhatIsNotRecorded(t *testing.T) {
	ctx := testContext(t)
	pods := newPods(ctx, t)
	recorder, err := Follow(ctx, shared.EtcdURL(), pods.Resource, pods.Namespace)
	require.NoError(t, err)
	err = recorder.Restore(ctx, func() error {
		return pods.Fill(ctx, 5)
	})
	require.NoError(t, err)
	recorder.following.stop()
	require.NoError(t, pods.Delete(ctx, cluster.Name(0)))
	require.NoError(t, pods.Delete(ctx, cluster.Name(1)))
	require.NoError(t, shared.Compact(ctx))
	recorder.resume()
	_, err = recorder.Reach(ctx)
	require.ErrorContains(t, err, "compacted")
	require.ErrorContains(t, recorder.Close(), "compacted")
}
