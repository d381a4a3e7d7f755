package informertest

import (
	"net/http"
	"time"
)

// slowTicks is how often a second a slow response gets its share.
const slowTicks = 10

func (x *exchange) Header() http.Header { return x.w.Header() }

// Unwrap lets an http.ResponseController find what else the connection can do.
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

func (x *exchange) WriteHeader(code int) {
	if x.pass() != nil {
		panic(http.ErrAbortHandler)
	}
	if e, ok := x.find(effectCut); ok && e.option { // cleanly
		// A response that is to look whole must not tell how long it was meant to be.
		x.Header().Del("Content-Length")
	}
	x.w.WriteHeader(code)
}

// FlushError is what an http.ResponseController calls to flush.
func (x *exchange) FlushError() error {
	if err := x.pass(); err != nil {
		return err
	}
	return x.flush()
}

func (x *exchange) flush() error { return http.NewResponseController(x.w).Flush() }

// Write lets bytes through as cuts, speed and hanging allow.
func (x *exchange) Write(p []byte) (int, error) {
	if x.many.Load() == 0 {
		return x.w.Write(p)
	}
	written := 0
	for {
		if err := x.pass(); err != nil {
			return written, err
		}
		x.breakOff()
		if written == len(p) {
			return written, nil
		}
		changed := x.wait()
		n, pause := x.allow(len(p) - written)
		n, err := x.w.Write(p[written : written+n])
		written += n
		x.spend(n)
		if err != nil {
			return written, err
		}
		if pause > 0 {
			if err := x.flush(); err != nil {
				return written, err
			}
			if err := x.sleep(pause, changed); err != nil {
				return written, err
			}
		}
	}
}

// allow returns how many of n bytes may pass at once, and how long to wait after them.
func (x *exchange) allow(n int) (int, time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	speed := 0
	for _, m := range x.meetings {
		switch e := m.fault.Effect; e.kind {
		case effectCut:
			n = min(n, m.left)
		case effectSlow:
			if speed == 0 || e.n < speed {
				speed = e.n
			}
		}
	}
	if speed == 0 {
		return n, 0
	}
	n = min(n, max(1, speed/slowTicks))
	return n, time.Duration(n) * time.Second / time.Duration(speed)
}

// spend counts bytes that passed.
func (x *exchange) spend(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.meetings {
		if m.fault.Effect.kind == effectCut {
			m.left -= n
		}
	}
}

// breakOff ends the handler, by a panic, when no more bytes may pass: what has passed is with the
// client.
func (x *exchange) breakOff() {
	over, clean := x.over()
	if !over {
		return
	}
	if x.flush() != nil || !clean {
		panic(http.ErrAbortHandler)
	}
	panic(endedCleanly{})
}

// over reports whether no more bytes may pass.
func (x *exchange) over() (over, clean bool) {
	if x.many.Load() == 0 {
		return false, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.meetings {
		if m.fault.Effect.kind == effectCut && m.left <= 0 {
			return true, m.fault.Effect.option
		}
	}
	return false, false
}
