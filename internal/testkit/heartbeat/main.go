// Command heartbeat runs a command and prints at least every 15 seconds what runs.
//
//	heartbeat [-interval D] [-table FILE] NAME COMMAND ARGUMENT...
//
// NAME begins each line that heartbeat prints itself. The events of `go test -json` become
// one line for each package, the whole output of each test that fails, and in the end the
// slowest tests. All other output passes through. The exit code is that of the command. A FILE gets
// a row of a Markdown table: NAME, how many tests passed, failed and were skipped, and the time.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"time"
)

func main() {
	interval := flag.Duration("interval", 15*time.Second, "the longest time without a line")
	table := flag.String("table", "", "the file that gets a row of a Markdown table")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: heartbeat [-interval D] [-table FILE] NAME COMMAND ARGUMENT...")
		os.Exit(2)
	}
	os.Exit(run(*interval, *table, flag.Arg(0), exec.Command(flag.Arg(1), flag.Args()[2:]...)))
}

// run returns the exit code of the command.
func run(interval time.Duration, table, name string, cmd *exec.Cmd) int {
	// A terminal interrupts the command as well. It ends then, and heartbeat after it.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	screen := &screen{w: os.Stdout}
	report := newReport(screen, name, time.Now())
	report.tests = slices.Contains(cmd.Args, "-json")
	cmd.Stderr = screen
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}

	lines := make(chan string)
	go func() {
		defer close(lines)
		readLines(output, lines)
	}()
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for open := true; open; {
		var line string
		select {
		case line, open = <-lines:
			if open {
				report.line(line)
			}
		case now := <-beat.C:
			if now.Sub(screen.lastWrite()) >= interval {
				report.beat(now)
			}
		}
	}
	err = cmd.Wait()
	ended := time.Now()
	report.end(ended, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), err)
	if table != "" {
		if failed := appendTo(table, report.row(ended, err)); failed != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, failed)
			return 1
		}
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	return 1
}

// appendTo writes a line behind those of a file.
func appendTo(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line)
	return errors.Join(err, file.Close())
}

// readLines sends the lines of r, however long they are. The last may have no newline.
func readLines(r io.Reader, lines chan<- string) {
	buffered := bufio.NewReader(r)
	for {
		line, err := buffered.ReadString('\n')
		if line != "" {
			lines <- line
		}
		if err != nil {
			return
		}
	}
}

// screen is an output that knows when it was last written to.
type screen struct {
	mu   sync.Mutex
	w    io.Writer
	last time.Time
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	return s.w.Write(p)
}

func (s *screen) lastWrite() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
