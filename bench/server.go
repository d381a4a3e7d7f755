package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/internal/testkit/selfsigned"
)

// serveCommand has this program be the process of simulated servers.
const serveCommand = "serve"

// simulated is what the process of simulated servers is told: which there are, how many of the last
// ones are not waited for, and how many addresses refuse connections, or swallow what comes.
type simulated struct {
	Options         []podserver.Options
	NotAwaited      int
	Refuse, Swallow int
}

// serve is that process. It answers with the servers, and ends when its input does.
func serve() (err error) {
	var order simulated
	input := json.NewDecoder(os.Stdin)
	if err := input.Decode(&order); err != nil {
		return err
	}
	f, err := podserver.StartFleet(order.Options, order.Refuse, order.Swallow)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var answer []race.Cluster
	for i, s := range f.Servers {
		config, o := s.Config(), order.Options[i]
		target := race.Target{
			Host: config.Host, CA: config.CAData, Control: f.Control(),
			Objects: o.Pods, Changed: o.Changed, Events: o.Events, LastVersion: o.LastVersion(),
		}
		answer = append(answer, race.Cluster{Target: target, Troubled: o.Trouble != podserver.Healthy || i >= len(f.Servers)-order.NotAwaited})
	}
	for _, a := range f.Absent {
		_, ca, err := selfsigned.Certificate() // its own, or client-go shares the transport
		if err != nil {
			return err
		}
		answer = append(answer, race.Cluster{Target: race.Target{Host: "https://" + a.Address, CA: ca}, Troubled: true})
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.MultiReader(input.Buffered(), os.Stdin))
	return err
}

// start starts the servers in a process of their own. stop ends it and waits until it is gone.
func (s simulated) start(ctx context.Context) (at []race.Cluster, stop func() error, err error) {
	executable, err := os.Executable()
	if err != nil {
		return at, nil, err
	}
	cmd := exec.CommandContext(ctx, executable, serveCommand)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return at, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return at, nil, err
	}
	if err := cmd.Start(); err != nil {
		return at, nil, err
	}
	stop = func() error {
		stdin.Close()
		return cmd.Wait()
	}
	if err := errors.Join(json.NewEncoder(stdin).Encode(s), json.NewDecoder(stdout).Decode(&at)); err != nil {
		return at, nil, fmt.Errorf("simulated servers: %w (%v)", err, stop())
	}
	return at, stop, nil
}

// host is a server beside this process, as long as heats need it.
type host struct {
	start  func(context.Context) (race.Target, func() error, error)
	target race.Target
	// stop is nil while it does not run.
	stop func() error
}

func (h *host) begin(ctx context.Context) (err error) {
	if h.stop == nil {
		h.target, h.stop, err = h.start(ctx)
	}
	return err
}

func (h *host) end() (err error) {
	if h.stop != nil {
		err = h.stop()
		h.stop = nil
	}
	return err
}

// simulatedHost is a simulated server.
func simulatedHost(o podserver.Options) *host {
	return &host{start: func(ctx context.Context) (target race.Target, stop func() error, err error) {
		at, stop, err := simulated{Options: []podserver.Options{o}}.start(ctx)
		if err != nil {
			return target, nil, err
		}
		return at[0].Target, stop, nil
	}}
}
