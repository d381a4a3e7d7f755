package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that outgoing connections use. A port
// inside that range could go to a connection of another process while a server is
// down, and a client that dials such a port without a listener may even
// connect to itself.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// freePort returns a loopback port without a listener.
func freePort() (int, error) {
	const tries = 100
	var last error
	for range tries {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
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
