package oracle

import (
	"fmt"

	"github.com/rvinformer/informer"
)

func authentic() Validator {
	return newValidator("authentic", "What is told of an object is a state that the server had: name, UID and version belong together. "+
		"A Deleted has the version of the deletion, or one of that object. An object stays as it is while it is lent, and one that is the handler's to keep for good.",
		checkAuthentic)
}

func checkAuthentic(j *judge) {
	for i := range j.tellings {
		t := &j.tellings[i]
		if reason := j.forged(t); reason != "" {
			j.blame(t.Key, fmt.Sprintf("%s: %s", t.text(), reason), 0, t.record)
		}
	}
	begun := map[int]int{}
	for n, r := range j.records {
		switch w := r.what.(type) {
		case call:
			begun[w.number] = n
			for _, wrong := range w.wrong {
				j.blame(wrong.key, wrong.what, n, n)
			}
		case answer:
			for _, wrong := range w.wrong {
				j.blame(wrong.key, wrong.what, begun[w.number], n)
			}
		case look:
			j.blame(w.wrong.key, w.wrong.what, 0, n)
		}
	}
}

// forged is what in t the server never had.
func (h *History) forged(t *telling) string {
	line := &h.keys[t.key]
	seen := h.seen(line, t.record)
	switch {
	case t.Key == "":
		return "it has no key"
	case t.Type == informer.Deleted:
		return t.forgedEnd(line, seen)
	case t.place != never:
		return ""
	}
	if at, ok := line.find(t.ResourceVersion, "", 0, seen); ok {
		return fmt.Sprintf("on the server, that version has UID %s", line.states[at].uid)
	}
	return "the server never had that version"
}

// forgedEnd is what in a deletion the server never had.
func (t *telling) forgedEnd(line *timeline, seen int) string {
	sameUID, sameVersion := t.UID == "" || seen == 0, t.ResourceVersion == "" || t.ResourceVersion == t.before.version || seen == 0
	for _, s := range line.states[:seen] {
		if sameUID && sameVersion {
			break
		}
		same := t.UID == "" || t.UID == s.uid
		sameUID = sameUID || same
		sameVersion = sameVersion || same && s.version == t.ResourceVersion
	}
	switch {
	case !sameUID:
		return "the server never had an object with that UID"
	case !sameVersion:
		return "the server never had that object in that version, nor its deletion"
	}
	return ""
}
