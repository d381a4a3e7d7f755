package pack

// WithPayloads returns r with other bytes in place of its own payload and of its base's.
func (r Record) WithPayloads(own, base []byte) Record {
	r.own, r.base = withPayload(r.own, own), withPayload(r.base, base)
	return r
}

func withPayload(record, payload []byte) []byte {
	if len(record) == 0 {
		return record
	}
	h, start := parse(record)
	head := record[start : start+h.head]
	h.payload = len(payload)
	return append(append(h.append(nil), head...), payload...)
}

// Payloads returns the payloads of r and of its base, which is nil if r needs none.
func (r Record) Payloads() (own, base []byte) { return payload(r.own), payload(r.base) }

func payload(record []byte) []byte {
	if len(record) == 0 {
		return nil
	}
	h, _ := parse(record)
	return h.payloadOf(record)
}

// Faults are ways to break a snapshot whose checksum is right nevertheless.
var Faults = map[string]func(s *Snapshot){
	"no current root":         func(s *Snapshot) { s.roots.current = 9 },
	"root without samples":    func(s *Snapshot) { s.roots.samples = 0 },
	"root is gone":            func(s *Snapshot) { s.roots.list[s.roots.current].data = nil; s.roots.current = 0 },
	"root is short":           func(s *Snapshot) { s.roots.list[s.roots.current].data = []byte("short") },
	"code is gone":            func(s *Snapshot) { s.codes.list = nil },
	"codes without a try":     func(s *Snapshot) { s.codes.tries = 0 },
	"too many codes":          func(s *Snapshot) { s.codes.tries = 4 },
	"samples of no root":      func(s *Snapshot) { s.roots.samples = 17 },
	"table of a code":         func(s *Snapshot) { s.codes.list[1].table = []byte("no table") },
	"base is gone":            func(s *Snapshot) { s.bases[1].ref = 0 },
	"base without record":     func(s *Snapshot) { s.bases = append(s.bases, base{ref: 1}) },
	"chunk is cut":            func(s *Snapshot) { s.chunks[1].data = s.chunks[1].data[:len(s.chunks[1].data)-1] },
	"chunk twice":             func(s *Snapshot) { s.chunks = append(s.chunks, s.chunks[1]) },
	"chunk 0 has records":     func(s *Snapshot) { s.chunks[0] = s.chunks[1] },
	"no record is dropped":    func(s *Snapshot) { s.chunks[1].dropped = []uint16{3} },
	"record is dropped twice": func(s *Snapshot) { s.chunks[1].dropped = []uint16{0, 0} },
}
