package keytable

// large keeps the texts that are too long for an entry.
type large struct {
	texts []string
	// free are the numbers not in use.
	free  []uint32
	bytes int64
}

func (l *large) add(text string) uint32 {
	l.bytes += int64(len(text))
	if n := len(l.free); n > 0 {
		number := l.free[n-1]
		l.free = l.free[:n-1]
		l.texts[number] = text
		return number
	}
	l.texts = append(l.texts, text)
	return uint32(len(l.texts) - 1)
}

func (l *large) remove(number uint32) {
	l.bytes -= int64(len(l.texts[number]))
	l.texts[number] = ""
	l.free = append(l.free, number)
}

func (l *large) size() int64 {
	return l.bytes + int64(cap(l.texts))*16 + int64(cap(l.free))*4
}
