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
