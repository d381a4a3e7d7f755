package podserver

import (
	"fmt"
	"net"
	"sync"
	"syscall"
)

// Absent is an address that no server answers at. Close frees it.
type Absent struct {
	// Address has the host and the port.
	Address string

	close func() error
}

// Close frees the address.
func (a *Absent) Close() error { return a.close() }

// Refuse reserves an address at which connections are refused.
func Refuse() (*Absent, error) {
	// A socket that is bound and does not listen keeps others from the port.
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a socket that refuses: %w", err)
	}
	closeSocket := func() error { return syscall.Close(fd) }
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		closeSocket()
		return nil, fmt.Errorf("binding a socket that refuses: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		closeSocket()
		return nil, fmt.Errorf("the port of a socket that refuses: %w", err)
	}
	return &Absent{fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port), closeSocket}, nil
}

// Swallow listens at an address, takes connections, and never answers.
func Swallow() (*Absent, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	var taking sync.WaitGroup
	taking.Go(func() {
		var taken []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			taken = append(taken, conn)
		}
		for _, conn := range taken {
			conn.Close()
		}
	})
	return &Absent{listener.Addr().String(), func() error {
		err := listener.Close()
		taking.Wait()
		return err
	}}, nil
}
