package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// serve is the process of a simulated server: it says where it is on its output,
// and ends when its input does.
func serve(o podserver.Options) error {
	s, err := podserver.Start(o)
	if err != nil {
		return err
	}
	config := s.Config()
	err = json.NewEncoder(os.Stdout).Encode(race.Target{
		Host: config.Host, CA: config.CAData, Simulated: true,
		Objects: o.Pods, Changed: o.Changed, Events: o.Events, LastVersion: o.LastVersion(),
	})
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.Close()
}

// server is a server that runs beside this process.
type server struct {
	target race.Target
	// stop ends it and waits until it is gone.
	stop func() error
}

// startServer starts a simulated server in a process of its own.
func startServer(ctx context.Context, o podserver.Options) (*server, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, executable, "serve", fmt.Sprintf("-pods=%d", o.Pods), fmt.Sprintf("-changed=%d", o.Changed), fmt.Sprintf("-events=%d", o.Events), fmt.Sprintf("-samples=%v", o.Samples), fmt.Sprintf("-sharded=%v", o.Sharded))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{stop: func() error {
		stdin.Close()
		return cmd.Wait()
	}}
	if err := json.NewDecoder(stdout).Decode(&s.target); err != nil {
		return nil, fmt.Errorf("simulated server: %w (%v)", err, s.stop())
	}
	return s, nil
}
