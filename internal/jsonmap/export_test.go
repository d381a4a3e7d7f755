package jsonmap

// Remembered returns how many strings and places d remembers, and how many bytes the strings of
// both take at most.
func (d *Decoder) Remembered() (words, places, bytes int) {
	for _, s := range d.words.slots {
		if text, ok := s.value.(string); ok {
			words++
			bytes += len(text)
		}
	}
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
	return words, places, bytes
}

const (
	MaxWords  = maxSlots
	MaxPlaces = maxPlaces
	MaxLength = maxLength
)
