package statuspage

import (
	"hash/maphash"
	"sync"

	"github.com/rvinformer/informer/internal/leaf/redact"
)

const (
	// maxText is how much of a text the page shows.
	maxText = 2 << 10
	// maxKnown bounds the memory of a generation of texts, in bytes, and knownText is what one
	// takes beside its own bytes.
	maxKnown, knownText = 8 << 20, 64
)

// shown is a text that may have credentials in it, as the page shows it.
func shown(text string) string {
	if text == "" {
		return ""
	}
	return known.redacted(text)
}

// known is shared by all pages, because what is shown of a text depends on the text alone.
var known = &texts{seed: maphash.MakeSeed()}

// texts redacts texts, each once for as long as it is asked for again and again: that may take a
// millisecond, and a search goes through the messages of all informers. A text is known again by
// its hash.
type texts struct {
	seed maphash.Seed

	mu sync.Mutex
	// young are the texts that were asked for since there was no room for more, and old those of
	// before. A text that stays as it is has the value "", so that its memory is not kept.
	young, old map[uint64]string
	// bytes is the memory of young.
	bytes int
}

func (t *texts) redacted(text string) string {
	hash := maphash.String(t.seed, text)
	t.mu.Lock()
	as, ok := t.young[hash]
	if !ok {
		if as, ok = t.old[hash]; ok {
			t.keepLocked(hash, as)
		}
	}
	t.mu.Unlock()
	switch {
	case ok && as == "":
		return text
	case ok:
		return as
	}
	short := redact.Short(text, maxText)
	if as = short; short == text {
		as = ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keepLocked(hash, as)
	return short
}

func (t *texts) keepLocked(hash uint64, as string) {
	if t.bytes += knownText + len(as); t.young == nil || t.bytes > maxKnown {
		t.young, t.old, t.bytes = map[uint64]string{}, t.young, knownText+len(as)
	}
	t.young[hash] = as
}
