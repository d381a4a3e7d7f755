package oracle

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer"
)

func confinedToShard() Validator {
	return newValidator("shard",
		"No call tells of an object that is not in the shard of the run.",
		checkShard)
}

func checkShard(j *judge) {
	j.judgeTellings((*memory).strays, func(_ *memory, t *telling) int { return j.from(t) })
}

// strays is why t is not in the shard, if so.
func (m *memory) strays(t *telling) string {
	if t.UID == "" && t.before.unsure || m.includes(t.Key, m.h.uidOf(t)) {
		return ""
	}
	return fmt.Sprintf("%s, and it is not in the shard", t.text())
}

// reshard notes that a run begins that follows another shard than the one before. What is not in it
// is forgotten.
func (m *memory) reshard(to informer.Shard, n int) {
	m.shard = to
	for i := range m.keys {
		k, line := &m.keys[i], &m.h.keys[i]
		if uid, known := m.known(k, line, n); known && !m.includes(line.key, uid) {
			k.leave()
		}
	}
}

// known is the UID of the object that the handler or the run knows, or that the handler has been
// told of.
func (m *memory) known(k *knowledge, line *timeline, n int) (uid types.UID, known bool) {
	at, exists := m.h.at(line, n)
	switch {
	case k.present && k.uid != "":
		return k.uid, true
	case k.place != never && (k.present || k.behind): // or it is what the run began with
		return line.states[k.place].uid, true
	case !k.present && k.told != "":
		return k.told, true
	case exists && (k.present || k.unsure || k.excused > 0):
		return line.states[at].uid, true
	}
	return "", false
}

// leave has the handler forget what it has. It may have begun with another object of that name, of
// which it is not known to which shard it belongs.
func (k *knowledge) leave() {
	before := *k
	*k = nothing()
	k.unsure, k.away = before.unsure, before.away
	if before.present {
		before.away = nil
		k.away = &before
	}
}

// comeBack has the handler know what it knew when it forgot that, because the run goes on from
// before.
func (k *knowledge) comeBack() {
	*k = *k.away
	k.calls, k.unsure = 0, true
}

// knows is what a run knows of a key of its shard.
func (m *memory) knows(r Run, line *timeline, n int) (version string, known bool) {
	version, known = r.Known[line.key]
	if !known || r.Shard.IsAll() {
		return version, known
	}
	if version == "" { // which of the objects of that name it is, is not known
		return "", slices.ContainsFunc(line.states[:m.h.seen(line, n)], func(s state) bool { return inShard(r.Shard, line.key, s.uid) })
	}
	if at, ok := line.last(version, "", m.h.seen(line, n)); ok && !inShard(r.Shard, line.key, line.states[at].uid) {
		return "", false
	}
	return version, true
}

// includes reports whether an object is in the shard that is followed, as far as its UID is known.
func (m *memory) includes(key string, uid types.UID) bool { return inShard(m.shard, key, uid) }

func inShard(s informer.Shard, key string, uid types.UID) bool {
	if s.IsAll() || s.Key == informer.ShardByUID && uid == "" {
		return true
	}
	namespace := ""
	if at := strings.IndexByte(key, '/'); at >= 0 {
		namespace = key[:at]
	}
	return s.Includes(namespace, string(uid))
}

// uidOf is the UID of the object that t tells of. It is empty if it is not known: t is a deletion
// without a UID, and the handler knows no object of that name.
func (h *History) uidOf(t *telling) types.UID {
	switch {
	case t.UID != "":
		return t.UID
	case t.before.uid != "":
		return t.before.uid
	case t.place != never && t.before.present:
		return h.keys[t.key].states[t.place].uid
	}
	return ""
}
