package objectcache_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/testkit/samples"
	"github.com/rvinformer/informer/objectcache"
)

// BenchmarkWarmRestart restores 100,000 pods from a file; 1 in 100 has changed since. It reports
// the time until all can be read, and until the informer is synced and has the changes.
func BenchmarkWarmRestart(b *testing.B) {
	const n = 100_000
	server := informertest.NewServer(informertest.Options{})
	defer server.Close()
	cluster := samples.Cluster{Seed: 1}
	require.NoError(b, server.Load(pods, func(yield func(apiruntime.Object) bool) {
		for _, pod := range cluster.Pods(0, n, 0) {
			if !yield(pod) {
				return
			}
		}
	}))
	directory := b.TempDir()
	begin := func(file string) (i *objectcache.Informer, end func()) {
		config := rest.CopyConfig(server.Config())
		config.ContentType = apiruntime.ContentTypeProtobuf
		factory, err := informer.NewDynamicListerWatcherFactory(config)
		require.NoError(b, err)
		i = newInformer(factory.ForResource("", pods), &corev1.Pod{}, objectcache.Options{Snapshot: informer.FileCheckpoint(file), Indexers: byNamespaceOnly})
		ctx, cancel := context.WithCancel(b.Context())
		var running sync.WaitGroup
		running.Go(func() { i.RunWithContext(ctx) })
		return i, func() { cancel(); running.Wait() }
	}
	until := func(done func() bool) time.Duration {
		began := time.Now()
		for !done() {
			time.Sleep(time.Millisecond)
		}
		return time.Since(began)
	}
	saved := filepath.Join(directory, "saved")
	i, end := begin(saved)
	until(i.HasSynced)
	end()
	for at := 0; at < n; at += 100 {
		pod := cluster.Pod(at, 1)
		pod.UID, pod.ResourceVersion = "", "" // the server has its own
		_, err := server.Update(pods, pod)
		require.NoError(b, err)
	}
	text, err := os.ReadFile(saved)
	require.NoError(b, err)
	var readable, current time.Duration
	runs := 0
	for b.Loop() {
		b.StopTimer()
		file := filepath.Join(directory, "next")
		require.NoError(b, os.WriteFile(file, text, 0o600))
		server.ResetRequests()
		b.StartTimer()
		i, end := begin(file)
		read := until(func() bool { return i.Store().Len() == n })
		readable += read
		current += read + until(func() bool { return i.HasSynced() && i.Status().ResourceVersion == server.ResourceVersion() })
		b.StopTimer()
		runs++
		require.NotEmpty(b, i.Status().ResumedFrom)
		end()
		b.StartTimer()
	}
	b.ReportMetric(float64(readable.Milliseconds())/float64(runs), "ms-until-read")
	b.ReportMetric(float64(current.Milliseconds())/float64(runs), "ms-until-current")
	b.ReportMetric(float64(len(text))/n, "B/object-on-disk")
}

// BenchmarkSnapshot writes and reads the objects of a store of 100,000 pods.
func BenchmarkSnapshot(b *testing.B) {
	const n = 100_000
	s := smallEmpty()
	for _, pod := range (samples.Cluster{Seed: 1}).Pods(0, n, 0) {
		require.NoError(b, s.Add(pod))
	}
	var file bytes.Buffer
	b.Run("save", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			file.Reset()
			_, err := s.WriteSnapshot(&file)
			require.NoError(b, err)
		}
		b.ReportMetric(float64(file.Len())/n, "B/object-on-disk")
	})
	b.Run("restore", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			again := smallEmpty()
			require.NoError(b, again.ReadSnapshot(bytes.NewReader(file.Bytes())))
			require.Equal(b, n, again.Len())
		}
	})
}
