package podserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/rvinformer/informer/bench/podserver/extra"
)

// Fleet is many servers in one process, and the controls of them. Some servers may be absent. Close
// ends it.
type Fleet struct {
	// Servers has those that are there, and Absent the others.
	Servers []*Server
	Absent  []*Absent

	control *http.Server
	address string
	serving sync.WaitGroup
}

// StartFleet starts a server for each of options, so many addresses that refuse, and so many that
// swallow.
func StartFleet(options []Options, refuse, swallow int) (_ *Fleet, err error) {
	f := &Fleet{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, o := range options {
		s, err := Start(o)
		if err != nil {
			return f, fmt.Errorf("server %d of a fleet: %w", len(f.Servers), err)
		}
		f.Servers = append(f.Servers, s)
	}
	for i := range refuse + swallow {
		make := Refuse
		if i >= refuse {
			make = Swallow
		}
		a, err := make()
		if err != nil {
			return f, err
		}
		f.Absent = append(f.Absent, a)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return f, err
	}
	f.address = listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+extra.UsagePath, f.answer(func(*Server) {}))
	mux.HandleFunc("POST "+extra.LeavePath, f.answer(func(s *Server) { s.door.leave() }))
	mux.HandleFunc("POST "+extra.ReturnPath, f.answer(func(s *Server) {
		s.Change(1)
		s.door.comeBack()
	}))
	f.control = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	f.serving.Go(func() { _ = f.control.Serve(listener) }) // until Close
	return f, nil
}

// Control is the address of the controls of the fleet: see extra.Control.
func (f *Fleet) Control() string { return f.address }

// Close ends all servers.
func (f *Fleet) Close() (err error) {
	if f.control != nil {
		err = f.control.Close()
		f.serving.Wait()
	}
	for _, s := range f.Servers {
		err = errors.Join(err, s.Close())
	}
	for _, a := range f.Absent {
		err = errors.Join(err, a.Close())
	}
	return err
}

// answer does something to each server, and answers with what they have used.
func (f *Fleet) answer(do func(*Server)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, s := range f.Servers {
			do(s)
		}
		// A client that does not get the answer has gone.
		_ = json.NewEncoder(w).Encode(f.usage())
	}
}

func (f *Fleet) usage() (u extra.Usage) {
	var process syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &process))
	u.CPU = time.Duration(process.Utime.Nano() + process.Stime.Nano())
	for _, s := range f.Servers {
		u.Requests += s.requests.Load()
		u.Bytes += s.bytes.Load()
		u.Watches += s.watches.Load()
		if s.options.Trouble != Healthy {
			continue
		}
		accepted, attempts, most := s.door.counts()
		u.Accepted += accepted
		u.Attempts += attempts
		u.MostAttempts = max(u.MostAttempts, most)
	}
	return u
}
