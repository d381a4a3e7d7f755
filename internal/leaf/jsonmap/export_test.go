package jsonmap

// Remembered returns how many places d remembers, and how many bytes their strings take at most.
func (d *Decoder) Remembered() (places, bytes int) {
	var under func(p *place)
	under = func(p *place) {
		for m := p.element; m != nil; m = m.next {
			places++
			bytes += len(m.text)
			under(m)
		}
		for m := p.newest; m != nil; m = m.older {
			places++
			bytes += len(m.name) + len(m.key) + len(m.text)
			under(m)
		}
	}
	if d.places.root != nil {
		under(d.places.root)
	}
	return places, bytes
}

const MaxPlaces = maxPlaces
