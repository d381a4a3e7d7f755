package delivery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// BenchmarkJournal lists 5,000 pods and hears of 5,000 changes, with no checkpoint, with one in a
// file that takes no journal, and with one that does.
//
//	go test -run - -bench Journal -benchtime 5x -count 5 ./tests/delivery
func BenchmarkJournal(b *testing.B) {
	for _, bench := range []struct {
		name  string
		store func(path string) informer.CheckpointStore
	}{
		{"none", func(string) informer.CheckpointStore { return nil }},
		{"saves", func(path string) informer.CheckpointStore { return noJournal{informer.FileCheckpoint(path)} }},
		{"journal", informer.FileCheckpoint},
	} {
		b.Run(bench.name, func(b *testing.B) {
			const objects = 5000
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s := informertest.NewServer(informertest.Options{})
				if err := s.Load(harness.Pods, manyPods(objects)); err != nil {
					b.Fatal(err)
				}
				factory, err := informer.NewDynamicListerWatcherFactory(s.Config())
				if err != nil {
					b.Fatal(err)
				}
				path := filepath.Join(b.TempDir(), "pods")
				told := make(chan struct{}, 2*objects)
				tell := func(interface{}) { told <- struct{}{} }
				i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
					ListerWatcher: factory.ForResource("", harness.Pods), ListMode: informer.ListModePaged, ExampleObject: &informer.RawObject{},
					Checkpoint: bench.store(path),
					Handler:    informer.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj interface{}) { tell(obj) }, DeleteFunc: tell},
				})
				used := cpuTime(b)
				b.StartTimer()
				stop := harness.Start(i.RunWithContext)
				for range objects {
					<-told
				}
				for n := range objects {
					if _, err := s.Create(harness.Pods, harness.Object(harness.Pods, fmt.Sprintf("new/%05d", n), "")); err != nil {
						b.Fatal(err)
					}
				}
				for range objects {
					<-told
				}
				b.StopTimer()
				b.ReportMetric(float64((cpuTime(b)-used).Microseconds())/(2*objects), "cpu-µs/event")
				if file, err := os.Stat(path); err == nil {
					b.ReportMetric(float64(file.Size())/(2*objects), "file-B/event")
				}
				stop()
				s.Close()
				b.StartTimer()
			}
			b.ReportMetric(2*objects*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// noJournal is a store without its journal.
type noJournal struct{ informer.CheckpointStore }

// cpuTime is the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
