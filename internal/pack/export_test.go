package pack

// WithPayloads returns r with other bytes in place of its own payload and of its base's.
func (r Record) WithPayloads(own, base []byte) Record {
	r.own.payload, r.base.payload = own, base
	return r
}

// Payloads returns the payloads of r and of its base, which is nil if r needs none.
func (r Record) Payloads() (own, base []byte) { return r.own.payload, r.base.payload }
