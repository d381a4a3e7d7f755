package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// hardware says on what was measured, and with which versions of Go and of client-go.
func hardware() string {
	return fmt.Sprintf("%d cores of %s, %s/%s, %s%s", runtime.NumCPU(), cpuModel(), runtime.GOOS, runtime.GOARCH, runtime.Version(), clientGo())
}

// clientGo is the version of client-go that the contestants are built with too, or empty.
func clientGo() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/client-go" {
			return ", client-go " + module.Version
		}
	}
	return ""
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
