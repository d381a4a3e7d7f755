package oracle

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// record is one thing that happened. It does not change.
type record struct {
	at time.Duration // since the Oracle was made
	// what is a Write, restoration, Run, halt, call, answer, synced, listed, claim, sample, asked,
	// waiting, rest, surrender, buried, look, storeLook, redelivering, redelivered, or request.
	what any
}

type (
	restoration struct {
		version string
		state   []Write
	}
	halt   struct{ killed bool }
	synced struct{}
	listed struct{}
	claim  struct{ source, version string }
	sample struct{ bytes, limit, largest int64 }
	// asked is a question how many keys wait, and waiting its answer.
	asked   struct{ question int }
	waiting struct{ question, keys int }
	rest    struct{ stored map[string]string }
	// surrender is an event that is not tried again.
	surrender struct{ key string }
	// buried are the dead letters that a checkpoint has, by key, and the keys of those that the
	// checkpoint before had, and that have ended.
	buried struct {
		letters map[string]string
		ended   []string
	}
	// look is at a kept object that has changed, storeLook at what the store holds of a key.
	look      struct{ wrong mistake }
	storeLook struct{ key, version string }
	// redelivering is a call to tell of everything again, and redelivered its success.
	redelivering struct{ number int }
	redelivered  struct{ number int }
	// request is one to the server, in words.
	request struct{ what string }
)

// call is the beginning of a call of the handler, and answer its end.
type call struct {
	number int
	events []Event // without their objects
	// wrong is what the objects are that are not what their events say.
	wrong []mistake
}

type answer struct {
	number int
	err    error
	// wrong is what the objects have become during the call.
	wrong []mistake
}

// mistake is what is wrong with the object of a key.
type mistake struct{ key, what string }

// withoutObject is e with what its object tells, and wrong with what the two disagree
// in. Nothing of it belongs to the object, which may be lent.
func withoutObject(e Event, wrong []mistake) (Event, []mistake) {
	obj := e.Object
	e.Object = nil
	e.Key, e.ResourceVersion = strings.Clone(e.Key), strings.Clone(e.ResourceVersion)
	e.UID = types.UID(strings.Clone(string(e.UID)))
	key, uid, version, ok := identity(obj)
	switch {
	case !ok:
	case e.UID == "":
		e.UID = types.UID(strings.Clone(string(uid)))
	case e.UID != uid:
		wrong = append(wrong, mistake{e.Key, fmt.Sprintf("the event has UID %s, its object %s", e.UID, uid)})
	}
	if ok && (key != e.Key || version != e.ResourceVersion) {
		wrong = append(wrong, mistake{e.Key, fmt.Sprintf("the event is of %s in version %s, its object of %s in version %s", e.Key, e.ResourceVersion, key, version)})
	}
	return e, wrong
}

// appendChange adds what has become of obj, which e told of, and when.
func appendChange(wrong []mistake, e Event, obj runtime.Object, when string) []mistake {
	key, uid, version, ok := identity(obj)
	if !ok || key == e.Key && uid == e.UID && version == e.ResourceVersion {
		return wrong
	}
	return append(wrong, mistake{e.Key, fmt.Sprintf("the object was changed %s, to %s with UID %s in version %s", when, key, uid, version)})
}

func identity(obj runtime.Object) (key string, uid types.UID, version string, ok bool) {
	if obj == nil {
		return "", "", "", false
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", "", "", false
	}
	key = accessor.GetName()
	if namespace := accessor.GetNamespace(); namespace != "" {
		key = namespace + "/" + key
	}
	return key, accessor.GetUID(), accessor.GetResourceVersion(), true
}

// line is the record in one line, as far as it is about the key; all of it for "".
func (r record) line(key string) string {
	return fmt.Sprintf("%+10.3fs  %s", r.at.Seconds(), describe(r.what, key))
}

func describe(what any, key string) string {
	switch w := what.(type) {
	case Write:
		return "server: " + w.text()
	case restoration:
		return "server: restored to version " + w.version + w.of(key)
	case Run:
		return "run started" + w.of(key)
	case halt:
		if w.killed {
			return "run killed"
		}
		return "run stopped"
	case call:
		return fmt.Sprintf("call %d: %s", w.number, w.of(key))
	case answer:
		if w.err != nil {
			return fmt.Sprintf("call %d failed: %v", w.number, w.err)
		}
		return fmt.Sprintf("call %d returned", w.number)
	case synced:
		return "seen synced"
	case listed:
		return "list asked for"
	case claim:
		return fmt.Sprintf("%s claims all up to version %s", w.source, w.version)
	case sample:
		return fmt.Sprintf("%d bytes queued of %d, largest object %d", w.bytes, w.limit, w.largest)
	case asked:
		return "asked how many keys wait"
	case waiting:
		return fmt.Sprintf("%d keys are said to wait", w.keys)
	case rest:
		return "settled" + w.of(key)
	case surrender:
		return "gave up " + w.key
	case buried:
		return fmt.Sprintf("a checkpoint has %d dead letters", len(w.letters))
	case look:
		return "kept: " + w.wrong.what
	case storeLook:
		if w.version == "" {
			return "the store does not have " + w.key
		}
		return fmt.Sprintf("the store has %s in version %s", w.key, w.version)
	case redelivering:
		return "asked to tell of all objects again"
	case redelivered:
		return "has told of all objects again"
	case request:
		return w.text()
	}
	return fmt.Sprintf("%T", what)
}

func (w Write) text() string {
	if w.Type == Other {
		return "other write, version " + w.ResourceVersion
	}
	return fmt.Sprintf("%s %s, version %s, UID %s", w.Type, w.Key, w.ResourceVersion, w.UID)
}

func (r restoration) of(key string) string {
	if key == "" {
		return fmt.Sprintf(", %d objects", len(r.state))
	}
	for _, w := range r.state {
		if w.Key == key {
			return fmt.Sprintf(", with %s in version %s, UID %s", key, w.ResourceVersion, w.UID)
		}
	}
	return ", without " + key
}

func (r Run) of(key string) string {
	text := ""
	if !r.Shard.IsAll() {
		text = " of " + r.Shard.String()
	}
	if r.Resumed != "" {
		text += ", resumed from version " + r.Resumed
	}
	switch version, known := r.Known[key]; {
	case len(r.Known) == 0:
	case key == "":
		text += fmt.Sprintf(", knows %d objects", len(r.Known))
	case known:
		text += ", knows " + key + " in version " + version
	default:
		text += ", does not know " + key
	}
	return text
}

func (c call) of(key string) string {
	var texts []string
	for _, e := range c.events {
		if key == "" || e.Key == key {
			texts = append(texts, e.text())
		}
	}
	text := strings.Join(texts, "; ")
	if len(texts) < len(c.events) {
		text += fmt.Sprintf(" (in a batch of %d)", len(c.events))
	}
	return text
}

func (e Event) text() string {
	text := fmt.Sprintf("%s %s, version %s, UID %s", e.Type, e.Key, e.ResourceVersion, e.UID)
	if e.IsInInitialList {
		text += ", initial"
	}
	if e.FinalStateUnknown {
		text += ", final state unknown"
	}
	return text
}

func (r rest) of(key string) string {
	switch version, stored := r.stored[key]; {
	case r.stored == nil || key == "":
		return ""
	case stored:
		return ", stored is " + version
	}
	return ", not stored"
}
