package race

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Result is what one run of a contestant has cost.
type Result struct {
	Contestant string
	Scenario   Scenario
	Objects    int // followed, or events of the burst, or idle informers
	Delivered  int // handler calls in the time that was measured

	Wall, CPU  time.Duration
	Synced     time.Duration // of a restart: until it was synced
	Allocs     uint64
	AllocBytes uint64
	Received   int64 // bytes off the sockets
	PeakRSS    int64
	Grown      int64 // of an audit: by how much PeakRSS is more than what the process had before it

	// Per idle informer: goroutines, their stacks, live objects, what heap and stacks occupy, gaps
	// included, and what is resident.
	Goroutines float64
	StackBytes float64
	LiveBytes  float64
	InUseBytes float64
	RSS        float64

	// Store are the costs of a store, Peaks the memory of a process with a readable cache, Read the
	// other costs of such a cache, and Many those of informers of many servers.
	Store *StoreCosts `json:",omitempty"`
	Peaks *Peaks      `json:",omitempty"`
	Read  *ReadCosts  `json:",omitempty"`
	Many  *ManyCosts  `json:",omitempty"`

	// What the server has used meanwhile, was asked, and has sent.
	ServerCPU   time.Duration
	Requests    int64
	ServerBytes int64
}

func (r *Result) notePeakRSS() (err error) {
	r.PeakRSS, err = peakRSS()
	return err
}

// stopwatch measures this process from one moment on.
type stopwatch struct {
	start  time.Time
	cpu    time.Duration
	memory runtime.MemStats
	// meter counts what comes from the server, and received is what it had counted.
	meter    *meter
	received int64
}

func (t *Target) startStopwatch() *stopwatch {
	s := &stopwatch{meter: t.meter, received: t.meter.total()}
	runtime.ReadMemStats(&s.memory)
	s.cpu = CPUTime()
	s.start = time.Now()
	return s
}

// stop adds what was used since the start.
func (s *stopwatch) stop(r *Result) {
	r.Wall = time.Since(s.start)
	r.CPU = CPUTime() - s.cpu
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	r.Allocs = now.Mallocs - s.memory.Mallocs
	r.AllocBytes = now.TotalAlloc - s.memory.TotalAlloc
	r.Received = s.meter.total() - s.received
}

// CPUTime is what this process has used, in user mode and in the kernel.
func CPUTime() time.Duration { return kernelClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// CPUTimeOf is what other processes have used.
func CPUTimeOf(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		const ofProcess = 2 // as clock_getcpuclockid(3) makes the clock of a process
		sum += kernelClock(^int32(pid)<<3 | ofProcess)
	}
	return sum
}

// threadCPUTime is that of the thread that it is called on.
func threadCPUTime() time.Duration { return kernelClock(unix.CLOCK_THREAD_CPUTIME_ID) }

// wallTime is the time since some moment.
func wallTime() time.Duration { return kernelClock(unix.CLOCK_MONOTONIC) }

// kernelClock reads one of the kernel's clocks. Unlike getrusage, they are exact between
// two ticks.
func kernelClock(id int32) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(id, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

// peakRSS is the most memory that this process had, in bytes.
func peakRSS() (int64, error) { return statusBytes("VmHWM") }

// statusBytes is the sum of some fields of /proc/self/status.
func statusBytes(fields ...string) (sum int64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if i := slices.Index(fields, name); i >= 0 {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
			if err != nil {
				return 0, err
			}
			sum, fields = sum+kilobytes<<10, slices.Delete(slices.Clone(fields), i, i+1)
		}
	}
	if len(fields) > 0 {
		return 0, fmt.Errorf("no %v in /proc/self/status", fields)
	}
	return sum, nil
}

// forgetPeakRSS makes the peak what is in use now.
func forgetPeakRSS() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// settledMemory is what is in use when there is no garbage.
func settledMemory() runtime.MemStats {
	// What finalizers and pools hold goes in later cycles, and each halves the
	// stacks that have become too large.
	for range 6 {
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now
}

// holding is what this process holds when nothing happens.
type holding struct {
	memory     runtime.MemStats
	goroutines int
	rss        int64
}

func held() (h holding, err error) {
	h.memory, h.goroutines = settledMemory(), runtime.NumGoroutine()
	debug.FreeOSMemory()
	h.rss, err = statusBytes("VmRSS")
	return h, err
}

// noteEach notes what each of n informers holds that have come since before.
func (r *Result) noteEach(before, after holding, n int) {
	each := func(before, after uint64) float64 { return (float64(after) - float64(before)) / float64(n) }
	b, a := &before.memory, &after.memory
	r.StackBytes, r.LiveBytes = each(b.StackInuse, a.StackInuse), each(b.HeapAlloc, a.HeapAlloc)
	r.InUseBytes = each(b.HeapInuse+b.StackInuse, a.HeapInuse+a.StackInuse)
	r.Goroutines, r.RSS = float64(after.goroutines-before.goroutines)/float64(n), each(uint64(before.rss), uint64(after.rss))
}
