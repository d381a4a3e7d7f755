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
