package race

import (
	"errors"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
)

// liveBytes is what is live on the heap, and what the process has in memory beside what the Go
// runtime has.
func liveBytes() (int64, error) {
	debug.FreeOSMemory()
	heap := settledMemory().HeapAlloc
	debug.FreeOSMemory()
	outside, err := outsideBytes()
	return int64(heap) + outside, err
}

// outsideBytes is the anonymous and the shared memory that is resident and not of the Go runtime.
// It is about right: the runtime has memory that it has not touched yet.
func outsideBytes() (int64, error) {
	resident, err := statusBytes("RssAnon", "RssShmem")
	if err != nil {
		return 0, err
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return max(0, resident-int64(sample[0].Value.Uint64()-sample[1].Value.Uint64())), nil
}

// cpuProfile begins one in a file beside that of the heap, and returns what ends it.
func cpuProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path + ".cpu")
	if err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close() // a profile that is not whole cannot be read
	}, pprof.StartCPUProfile(file)
}

// writeProfile writes a profile of a name to a file, if it is named.
func writeProfile(name, path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(name).WriteTo(file, 0), file.Close())
}
