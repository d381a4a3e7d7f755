package cluster

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

// Ports are taken from below the range that outgoing connections use. A port
// inside that range could go to a connection of another process while a server is
// down, and a client that dials such a port without a listener may even
// connect to itself.
const (
	lowestPort  = 20000
	highestPort = 32000

	// portsApart is how far apart two processes begin whose numbers follow each other. One process
	// needs fewer ports.
	portsApart = 64
)

// portsTried counts the ports that this process has tried. Each is tried once: a port without a
// listener may be that of a cluster whose server is not up yet, or is down for a while.
var portsTried atomic.Int64

// freePort returns a loopback port without a listener, another one each time.
func freePort() (int, error) {
	const tries = 100
	var last error
	for range tries {
		port := lowestPort + (os.Getpid()*portsApart+int(portsTried.Add(1)))%(highestPort-lowestPort)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("free port: %w", err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("no free port in %d tries: %w", tries, last)
}
