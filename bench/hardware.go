package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// hardware says on what was measured.
func hardware() string {
	return fmt.Sprintf("%d cores of %s, %s/%s, %s", runtime.NumCPU(), cpuModel(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "an unknown CPU"
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, model, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return "an unknown CPU"
}

// load is how many processes wanted to run in the last minute.
type load float64

func currentLoad() (l load) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &l) // 0 where there is no telling
	}
	return l
}

// alone says so where the figures were taken beside other work.
func (l load) alone() string {
	if l < 1 {
		return ""
	}
	return fmt.Sprintf(" with other work (the load was %.1f before)", float64(l))
}
