package main

import (
	"bytes"
	"fmt"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
)

// handlers compares handlers that share an informer, and start together, with one that has an
// informer of its own.
type handlers struct {
	settings
	heats []*heat
}

func newHandlers() *handlers {
	return &handlers{settings: newSettings(5, 100_000, "ours", "ourstyped")}
}

// sharedBy are the numbers of handlers.
var sharedBy = []int{1, 3, 10}

// ownInformer is what the rows are compared with.
const ownInformer = "one handler, an informer of its own"

// handlerForms are the contestants, and what their tables are called.
var handlerForms = []struct{ contestant, title string }{
	{"ours-raw", "Raw objects in JSON, by watch-list"},
	{"ours-raw-paged", "Raw objects in JSON, in pages"},
	{"ours-typed", "Typed objects in protobuf, by watch-list"},
}

func (s *handlers) plan(all contestants) ([]*heat, error) {
	host := simulatedHost(podserver.Options{Pods: s.pods})
	for _, form := range handlerForms {
		e := all.named(form.contestant)
		h := s.newHeat(race.ColdStart, s.pods, host)
		add := func(name string, n int) {
			h.add(race.Entry{Name: name, Floor: ownInformer}, e, race.Order{Handlers: n, Holds: true})
		}
		add(ownInformer, 0)
		for _, n := range sharedBy {
			add(fmt.Sprintf("%d of a shared informer", n), n)
		}
		s.heats = append(s.heats, h)
	}
	return s.heats, nil
}

var handlerColumns = []column{
	figure("received", received, receivedMB), ratio("bytes, × own informer", ownInformer, receivedMB),
	figure("CPU", duration, cpu), ratio("CPU, × own informer", ownInformer, cpu),
	figure("wall", duration, wall), figure("server's CPU", duration, serverCPU), figure("peak RSS", mib, peakMB),
	{"live bytes of each key and handler", func(h *heat, e race.Entry) string {
		for _, n := range sharedBy {
			if e.Name == fmt.Sprintf("%d of a shared informer", n) {
				return as("%.0f")(h.of(e.Name, liveEach) / float64(n))
			}
		}
		return as("%.0f")(h.of(e.Name, liveEach))
	}},
}

// liveEach are the live bytes for each object.
func liveEach(r race.Result) float64 { return r.LiveBytes / float64(r.Objects) }

func (s *handlers) sections() ([]section, error) {
	var b bytes.Buffer
	b.WriteString(s.head("## Several handlers that start together"))
	fmt.Fprintf(&b, quoted(`
Cold starts with %s pods, whose handlers do nothing. The handlers of a 'SharedResourceVersionInformer' that start together read one list: the server sends the set
once. Each has its own queue, table of keys and objects: for each handler, an object is copied, decoded if it is typed, queued, delivered and remembered. CPU is that
of the process until all handlers were called for all objects. The live bytes are what the heap holds then, beyond what it held before the start.
`), thousands(s.pods))
	for i, form := range handlerForms {
		s.heats[i].table(&b, form.title, handlerColumns...)
	}
	return []section{{more, "bench-handlers", b.Bytes()}}, nil
}
