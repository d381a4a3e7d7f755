package oracle

import "fmt"

func resumable() Validator {
	return newValidator("resumable", "Up to the version of a checkpoint, and up to the one that a run goes on from, everything is acknowledged, or is a dead letter of the checkpoint. "+
		"What a run begins to know by them is not older than that, and after a run that was not killed it is all that was acknowledged.",
		checkResumable)
}

func checkResumable(j *judge) {
	checkClaims(j, func(what any) (version string, ok bool) {
		switch w := what.(type) {
		case claim:
			return w.version, w.source == FromCheckpoint && !j.options.Overtaken
		case Run:
			return w.Resumed, !j.options.Unreadable && !j.options.Overtaken
		}
		return "", false
	}, func(k *knowledge) bool { return k.letter != "" })
	checkLeft(j)
}

// checkLeft checks what runs begin with.
func checkLeft(j *judge) {
	j.follow(func(m *memory, n int, what any) {
		run, ok := what.(Run)
		if !ok || run.Known == nil {
			return
		}
		to, resumes := 0, false
		if run.Resumed != "" && !j.options.Unreadable && !j.options.Overtaken {
			to, resumes = m.judged(run.Resumed, n)
		}
		for key := range j.keys {
			reason := m.unsaved(key, run, n)
			if reason == "" && resumes {
				reason = m.outdated(key, run, to, n)
			}
			j.blame(j.keys[key].key, reason, m.told(key), n)
		}
	})
}

// unsaved is what of a key was acknowledged for sure, and a run that follows one that
// was not killed does not know.
func (m *memory) unsaved(key int, run Run, n int) string {
	k := &m.keys[key]
	if m.run == 0 || m.killed || k.unsure || !inShard(run.Shard, m.h.keys[key].key, k.uid) {
		return ""
	}
	switch version, known := m.knows(run, &m.h.keys[key], n); {
	case !k.present && known && k.away != nil && version == k.away.version: // the checkpoint is of before it was forgotten
	case k.present && !known:
		return fmt.Sprintf("acknowledged in version %s, and the next run does not know it", k.version)
	case !k.present && known && version == "" && run.Dead[m.h.keys[key].key]: // the letter is for an object that is yet to come
	case !k.present && known:
		return fmt.Sprintf("the next run knows it in version %s, and it is not what the handler has acknowledged", version)
	case known && version != k.version:
		return fmt.Sprintf("acknowledged in version %s, and the next run knows version %s", k.version, version)
	}
	return ""
}

// outdated is what of a key a run that goes on from the write to does not know, although it is no
// dead letter.
func (m *memory) outdated(key int, run Run, to, n int) string {
	line := &m.h.keys[key]
	at, ok := m.h.at(line, to+1)
	if !ok {
		return ""
	}
	version, known := m.knows(run, line, n)
	if known && version == "" || m.keys[key].letter != "" || run.Dead[line.key] {
		return ""
	}
	s := line.states[at]
	switch {
	case !inShard(run.Shard, line.key, s.uid):
		return ""
	case known && s.gone:
		if _, later := line.find(version, "", at, m.h.seen(line, n)); later {
			return ""
		}
		return fmt.Sprintf("known in version %s, and gone before version %s, from which the run goes on", version, run.Resumed)
	case s.gone:
		return ""
	case known:
		if _, ok := line.find(version, "", at, m.h.seen(line, n)); ok {
			return ""
		}
		return fmt.Sprintf("known in version %s, and in version %s before version %s, from which the run goes on", version, s.version, run.Resumed)
	}
	if _, gone := line.findEnd(s.uid, at, m.h.seen(line, n)); gone {
		return "" // acknowledged later, or it came and went
	}
	return fmt.Sprintf("not known, and in version %s before version %s, from which the run goes on", s.version, run.Resumed)
}
