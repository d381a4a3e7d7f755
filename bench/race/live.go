package race

import (
	"bufio"
	"bytes"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"strconv"
	"strings"
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
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	var resident int64
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
		if err != nil {
			return 0, err
		}
		resident += kilobytes << 10
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

// heapProfile writes what is live to a file, if it is named.
func heapProfile(path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.Lookup("heap").WriteTo(file, 0); err != nil {
		return err
	}
	return file.Close()
}
