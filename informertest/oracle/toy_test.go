package oracle_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
)

// toyServer is a server of a few objects. Its versions are the numbers of its writes,
// or names for these without an order.
type toyServer struct {
	oracle *oracle.Oracle
	opaque bool
	seq    int
	epoch  int
	uids   int
	state  map[string]toyObject
	log    []toyChange // of this epoch
	start  int         // the write after which log begins
	backup toyBackup
}

type toyObject struct {
	uid types.UID
	seq int
}

type toyBackup struct {
	seq   int
	state map[string]toyObject
}

type toyChange struct {
	key  string
	seq  int
	gone bool
	toyObject
}

func newToyServer(o *oracle.Oracle, opaque bool) *toyServer {
	return &toyServer{oracle: o, opaque: opaque, state: map[string]toyObject{}, backup: toyBackup{state: map[string]toyObject{}}}
}

// version is how a write is called.
func (s *toyServer) version(seq int) string {
	if s.opaque {
		return fmt.Sprintf("v-%x", seq*7919%1000003)
	}
	return fmt.Sprint(seq)
}

func (s *toyServer) record(t oracle.WriteType, key string, c toyChange) {
	s.log = append(s.log, c)
	s.oracle.Wrote(oracle.Write{Type: t, Key: key, UID: c.uid, ResourceVersion: s.version(c.seq)})
}

func (s *toyServer) put(key string) {
	s.seq++
	obj, there := s.state[key]
	t := oracle.Updated
	if !there {
		s.uids++
		obj.uid, t = types.UID(fmt.Sprintf("uid-%d", s.uids)), oracle.Created
	}
	obj.seq = s.seq
	s.state[key] = obj
	s.record(t, key, toyChange{key: key, seq: s.seq, toyObject: obj})
}

func (s *toyServer) remove(key string) {
	if obj, there := s.state[key]; there {
		s.seq++
		delete(s.state, key)
		s.record(oracle.Deleted, key, toyChange{key: key, seq: s.seq, gone: true, toyObject: obj})
	}
}

func (s *toyServer) other() {
	s.seq++
	s.oracle.Wrote(oracle.Write{Type: oracle.Other, ResourceVersion: s.version(s.seq)})
}

func (s *toyServer) save() { s.backup = toyBackup{s.seq, maps.Clone(s.state)} }

func (s *toyServer) restore() {
	s.seq, s.state, s.log, s.start = s.backup.seq, maps.Clone(s.backup.state), nil, s.backup.seq
	s.epoch++
	var state []oracle.Write
	for _, key := range slices.Sorted(maps.Keys(s.state)) {
		obj := s.state[key]
		state = append(state, oracle.Write{Type: oracle.Created, Key: key, UID: obj.uid, ResourceVersion: s.version(obj.seq)})
	}
	s.oracle.Restored(s.version(s.seq), state)
}

// bug is something that a toyInformer does wrong.
type bug string

const (
	noBug        bug = ""
	loses        bug = "loses an update"
	losesDelete  bug = "loses a deletion"
	repeats      bug = "tells an event twice"
	reorders     bug = "tells an old state after a new one"
	resurrects   bug = "tells an old state after a deletion"
	deletes      bug = "deletes what lives"
	merges       bug = "tells another object as an update"
	invents      bug = "tells a version that never was"
	mixesUp      bug = "tells another UID"
	claimsEarly  bug = "claims what waits"
	savesEarly   bug = "saves what waits"
	jumps        bug = "goes on too late after a restart"
	mislabels    bug = "says that a later object is in the first list"
	forgetsLabel bug = "says of nothing that it is in the first list"
	syncsEarly   bug = "is synced while the first list waits"
	forgetsSweep bug = "does not delete what a list does not show"
	keepsStale   bug = "stores something else"
	parallel     bug = "calls the handler for a key that it is busy with"
	undercounts  bug = "does not count what the handler has"
	overcounts   bug = "counts what it has told for ever"
	scatters     bug = "tries a part of a batch that failed"
	hammers      bug = "asks for a list again and again"
)

// toyInformer is an informer as small as can be. It does what a real one does, step by
// step as a test says.
type toyInformer struct {
	server *toyServer
	oracle *oracle.Oracle
	bug    bug
	listed bool // tells of its lists
	// troubled: a call has failed, a run has followed another, or versions went back, so
	// that it may be unsure what the handler knows.
	troubled bool
	// shown: the bug had an effect that a Validator has to see. Lost are the keys that it
	// has kept from the handler, which is seen when all has settled.
	shown bool
	lost  map[string]bool
	hand  map[string]toyObject // what the handler has

	running   bool
	storage   map[string]toyObject
	unsettled map[string]bool
	pending   []*toyItem
	failed    [][]*toyItem // batches that have to come again
	busy      map[string]bool
	calls     []*toyCall

	epoch, position int
	began           int  // where the server was when the run began
	listing         bool // has to list
	initial         bool // the first list is not through yet
	synced, resumed bool

	saved *toyCheckpoint
}

// toyItem is what waits of a key.
type toyItem struct {
	key     string
	object  *toyObject // nil: gone
	end     *toyChange // the deletion, if a watch has told of it
	first   int        // the first write that it is about
	listed  bool
	initial bool
}

type toyCall struct {
	items []*toyItem
	told  []oracle.Event
	done  func(error)
}

type toyCheckpoint struct {
	storage   map[string]toyObject
	unsettled []string
	epoch     int
	resume    int // -1: none
}

func newToyInformer(s *toyServer, b bug) *toyInformer {
	return &toyInformer{server: s, oracle: s.oracle, bug: b, lost: map[string]bool{}, hand: map[string]toyObject{}}
}

// start starts a run that knows nothing, or what storage or checkpoint have.
func (i *toyInformer) start(from *toyCheckpoint) {
	i.running, i.storage, i.unsettled = true, map[string]toyObject{}, map[string]bool{}
	i.pending, i.failed, i.calls, i.busy = nil, nil, nil, map[string]bool{}
	i.listing, i.initial, i.synced, i.resumed = true, false, false, false
	var r oracle.Run
	if from == nil {
		clear(i.lost)
		clear(i.hand)
		i.saved = nil
	} else {
		i.storage = maps.Clone(from.storage)
		maps.DeleteFunc(i.lost, func(key string, _ bool) bool { return i.hand[key] != i.storage[key] })
		r.Known = i.stored()
		for _, key := range from.unsettled {
			i.unsettled[key] = true
			if _, ok := r.Known[key]; !ok {
				r.Known[key] = ""
			}
		}
		if from.resume >= 0 && from.epoch == i.server.epoch {
			i.position, i.listing, i.resumed = from.resume, false, true
			if i.bug == jumps && i.server.seq > from.resume {
				for _, c := range i.after(from.resume) {
					i.lost[c.key] = true
				}
				i.position = i.server.seq
			}
			r.Resumed = i.server.version(i.position)
		}
	}
	i.epoch, i.began = i.server.epoch, i.server.seq
	i.troubled = i.troubled || from != nil || i.epoch > 0
	i.oracle.Started(r)
}

func (i *toyInformer) stored() map[string]string {
	versions := map[string]string{}
	for key, obj := range i.storage {
		versions[key] = i.server.version(obj.seq)
	}
	return versions
}

// stop ends a run.
func (i *toyInformer) stop(killed bool) {
	if !killed {
		for len(i.calls) > 0 {
			i.finish(0, nil)
		}
		i.save()
	}
	i.running = false
	i.oracle.Stopped(killed)
}

func (i *toyInformer) after(seq int) []toyChange {
	at, _ := slices.BinarySearchFunc(i.server.log, seq+1, func(c toyChange, seq int) int { return c.seq - seq })
	return i.server.log[at:]
}

// read reads what comes next from the server.
func (i *toyInformer) read() {
	switch changes := i.after(i.position); {
	case i.epoch != i.server.epoch, i.listing:
		i.list()
	case len(changes) > 0:
		i.watched(changes[0])
	default:
		i.position = i.server.seq // a bookmark
	}
}

func (i *toyInformer) list() {
	if i.listed {
		i.oracle.Listed()
	}
	i.oracle.Requested("list")
	if i.bug == hammers {
		i.shown = true
		for range oracle.Requests {
			i.oracle.Requested("list")
		}
	}
	i.initial = !i.synced && !i.resumed
	i.troubled = i.troubled || i.server.epoch > 0
	i.epoch, i.position, i.listing = i.server.epoch, i.server.seq, false
	for _, key := range slices.Sorted(maps.Keys(i.server.state)) {
		obj := i.server.state[key]
		i.put(&toyItem{key: key, object: &obj, first: 0, listed: true, initial: i.initial})
	}
	gone := slices.Concat(slices.Collect(maps.Keys(i.storage)), slices.Collect(maps.Keys(i.unsettled)))
	for _, item := range i.waiting() {
		gone = append(gone, item.key)
	}
	slices.Sort(gone)
	for _, key := range slices.Compact(gone) {
		if _, there := i.server.state[key]; there {
			continue
		}
		if _, known := i.storage[key]; i.bug == forgetsSweep && known {
			i.lost[key] = true
			continue
		}
		i.put(&toyItem{key: key, first: 0, listed: true, initial: i.initial})
	}
}

// waiting is all that waits for the handler, or is with it.
func (i *toyInformer) waiting() []*toyItem {
	items := slices.Concat(append(i.failed, i.pending)...)
	for _, c := range i.calls {
		items = append(items, c.items...)
	}
	return items
}

func (i *toyInformer) watched(c toyChange) {
	i.position = c.seq
	_, has := i.storage[c.key]
	if i.stale(c) {
		return
	}
	switch {
	case i.bug == loses && !c.gone, i.bug == losesDelete && c.gone && has:
		i.lost[c.key] = true
		return
	}
	item := &toyItem{key: c.key, first: c.seq}
	if c.gone {
		item.end = &c
	} else {
		item.object = &c.toyObject
	}
	i.put(item)
}

// stale reports whether a change is older than what is known.
func (i *toyInformer) stale(c toyChange) bool {
	if i.server.opaque {
		return false
	}
	for _, item := range i.waiting() {
		if item.key == c.key { // what is known may be of another epoch
			return item.object != nil && item.object.seq >= c.seq
		}
	}
	known, has := i.storage[c.key]
	return has && known.seq >= c.seq
}

// put has an item wait, in place of an older one of its key.
func (i *toyInformer) put(item *toyItem) {
	for _, old := range slices.Concat(append(i.failed, i.pending)...) {
		if old.key == item.key {
			first, initial := old.first, old.initial
			*old = *item
			old.first, old.initial = min(first, item.first), old.initial || initial
			return
		}
	}
	i.pending = append(i.pending, item)
}

// take calls the handler with at most that many waiting items.
func (i *toyInformer) take(most int) {
	if len(i.failed) > 0 {
		batch := i.failed[0]
		i.failed = i.failed[1:]
		if i.bug == scatters && len(batch) > 1 {
			i.shown = true
			i.pending = append(i.pending, batch[1:]...)
			batch = batch[:1]
		}
		i.call(batch)
		return
	}
	var batch []*toyItem
	for _, item := range slices.Clone(i.pending) {
		if len(batch) == most {
			break
		}
		if i.busy[item.key] && i.bug != parallel {
			continue
		}
		i.pending = slices.DeleteFunc(i.pending, func(other *toyItem) bool { return other == item })
		batch = append(batch, item)
	}
	i.call(batch)
}

// call calls the handler with the items that have something to tell.
func (i *toyInformer) call(batch []*toyItem) {
	c := &toyCall{}
	for _, item := range batch {
		e, ok := i.event(item)
		if !ok {
			continue
		}
		i.shown = i.shown || i.busy[item.key] || e.IsInInitialList && i.synced
		i.busy[item.key] = true
		c.items, c.told = append(c.items, item), append(c.told, e)
	}
	if len(c.items) > 0 {
		c.done = i.oracle.Told(c.told...)
		i.calls = append(i.calls, c)
	}
}

// event is what to tell of an item.
func (i *toyInformer) event(item *toyItem) (e oracle.Event, ok bool) {
	known, has := i.storage[item.key]
	e = oracle.Event{Key: item.key, IsInInitialList: item.initial}
	if i.bug == forgetsLabel {
		e.IsInInitialList = false
		unchanged := item.object != nil && i.server.state[item.key] == *item.object && item.object.seq <= i.began
		i.shown = i.shown || item.initial && !has && !i.synced && !i.troubled && i.server.epoch == 0 && unchanged
	}
	if !item.initial && i.synced && i.bug == mislabels {
		e.IsInInitialList = true
	}
	replaced := has && item.object != nil && item.object.uid != known.uid
	switch {
	case replaced && i.bug == merges:
		i.shown = i.shown || !i.troubled
	case replaced || item.object == nil && has && (item.end == nil || item.end.uid != known.uid):
		e.Type, e.UID, e.ResourceVersion, e.FinalStateUnknown = informer.Deleted, known.uid, i.server.version(known.seq), true
		return e, true
	case item.object == nil && (has || i.unsettled[item.key] || i.resumed && item.end != nil):
		e.Type, e.FinalStateUnknown = informer.Deleted, true
		if item.end != nil {
			e.UID, e.ResourceVersion, e.FinalStateUnknown = item.end.uid, i.server.version(item.end.seq), false
		}
		return e, true
	case item.object == nil:
		return e, false
	}
	e.UID, e.ResourceVersion = item.object.uid, i.server.version(item.object.seq)
	switch {
	case !has:
		e.Type = informer.Added
	case known == *item.object && i.unsettled[item.key], known != *item.object:
		e.Type = informer.Updated
	case item.listed:
		e.Type = informer.Synced
	default:
		return e, false
	}
	return i.falsified(e), true
}

// falsified is an event as a bug has it.
func (i *toyInformer) falsified(e oracle.Event) oracle.Event {
	switch i.bug {
	case invents:
		e.ResourceVersion, i.shown = "x"+e.ResourceVersion, true
	case mixesUp:
		e.UID, i.shown = "x"+e.UID, true
	}
	return e
}

// finish ends a call of the handler.
func (i *toyInformer) finish(number int, err error) {
	c := i.calls[number]
	i.calls = slices.Delete(i.calls, number, number+1)
	c.done(err)
	var again []*toyItem
	for at, item := range c.items {
		delete(i.busy, item.key)
		if err != nil {
			i.unsettled[item.key], i.troubled = true, true
			i.pending = slices.DeleteFunc(i.pending, func(newer *toyItem) bool {
				if newer.key != item.key {
					return false
				}
				first, initial := item.first, item.initial
				*item = *newer
				item.first, item.initial = min(first, newer.first), initial || newer.initial
				return true
			})
			again = append(again, item)
			continue
		}
		i.taken(item, c.told[at])
	}
	switch {
	case len(again) > 0 && errors.Is(err, oracle.ErrPanic):
		for _, item := range again {
			i.failed = append(i.failed, []*toyItem{item})
		}
	case len(again) > 0:
		i.failed = append(i.failed, again)
	}
}

// taken notes what the handler has acknowledged.
func (i *toyInformer) taken(item *toyItem, told oracle.Event) {
	delete(i.unsettled, item.key)
	old, had := i.storage[item.key]
	delete(i.hand, item.key)
	if told.Type != informer.Deleted {
		i.storage[item.key], i.hand[item.key] = *item.object, *item.object
		i.tellAgain(told, old, had)
		return
	}
	delete(i.storage, item.key)
	switch {
	case item.object != nil: // the next one of its name comes now
		newer := slices.IndexFunc(i.pending, func(other *toyItem) bool { return other.key == item.key })
		if newer >= 0 {
			i.pending[newer].first = min(i.pending[newer].first, item.first)
		} else {
			i.pending = append(i.pending, item)
		}
	case i.bug == resurrects && had && i.server.state[item.key] == (toyObject{}):
		i.tell(oracle.Event{Type: informer.Added, Key: item.key, UID: old.uid, ResourceVersion: i.server.version(old.seq)})
	}
}

// tellAgain tells what a bug has it tell after what was told.
func (i *toyInformer) tellAgain(told oracle.Event, old toyObject, had bool) {
	again := told
	again.Type, again.IsInInitialList = informer.Updated, false
	switch {
	case i.bug == repeats:
		i.tell(again)
	case i.bug == reorders && had && old.uid == told.UID && i.server.epoch == 0 && old != i.storage[told.Key]:
		again.ResourceVersion = i.server.version(old.seq)
		i.tell(again)
	case i.bug == deletes && i.server.state[told.Key].uid == told.UID && i.server.epoch == 0:
		again.Type, again.FinalStateUnknown = informer.Deleted, true
		i.tell(again)
	}
}

func (i *toyInformer) tell(e oracle.Event) {
	i.shown = true
	i.oracle.Told(e)(nil)
}

// count says how many keys wait.
func (i *toyInformer) count(settled bool) {
	keys, with := map[string]bool{}, map[string]bool{}
	for _, item := range i.waiting() {
		keys[item.key] = true
	}
	for key := range i.busy {
		with[key] = true
		if i.bug == undercounts {
			delete(keys, key)
		}
	}
	if i.bug == overcounts && len(i.hand) > 0 {
		keys["another"] = true
	}
	i.shown = i.shown || len(keys) < len(with) || settled && len(keys) > 0
	i.oracle.Waiting(func() int { return len(keys) })
}

// resume is the write up to which all is acknowledged; -1: not known.
func (i *toyInformer) resume() int {
	resume := i.position
	if i.listing || i.epoch != i.server.epoch {
		return -1
	}
	for _, item := range i.waiting() {
		if item.listed {
			return -1
		}
		resume = min(resume, item.first-1)
	}
	return resume
}

// early is what a bug takes for resume.
func (i *toyInformer) early() int {
	resume := i.resume()
	if i.listing || i.epoch != i.server.epoch || i.server.epoch > 0 {
		return resume
	}
	for _, item := range i.waiting() {
		now, there := i.server.state[item.key]
		unacknowledged := item.object != nil && there && now == *item.object && i.hand[item.key] != now
		if unacknowledged && now.seq <= i.position {
			i.shown = true
			return i.position
		}
	}
	return resume
}

func (i *toyInformer) status() {
	resume := i.resume()
	if i.bug == claimsEarly {
		resume = i.early()
	}
	if resume >= 0 {
		i.oracle.Claimed(oracle.FromStatus, i.server.version(resume))
	}
}

func (i *toyInformer) save() {
	resume := i.resume()
	if i.bug == savesEarly {
		resume = i.early()
	}
	if i.server.opaque && resume != i.position {
		// A watch from there would show old states of objects that are stored in a newer one,
		// without a sign of it.
		resume = -1
	}
	i.saved = &toyCheckpoint{storage: maps.Clone(i.storage), epoch: i.epoch, resume: resume}
	for _, key := range slices.Sorted(maps.Keys(i.unsettled)) {
		if _, known := i.storage[key]; !known {
			i.saved.unsettled = append(i.saved.unsettled, key)
		}
	}
	if resume >= 0 {
		i.oracle.Claimed(oracle.FromCheckpoint, i.server.version(resume))
	} else {
		i.oracle.Claimed(oracle.FromCheckpoint, "")
	}
}

// look sees whether it is synced.
func (i *toyInformer) look() {
	if i.synced || i.listing {
		return
	}
	early := i.bug == syncsEarly && slices.ContainsFunc(i.calls, func(c *toyCall) bool {
		return slices.ContainsFunc(c.told, func(e oracle.Event) bool { return e.IsInInitialList })
	})
	for _, item := range i.waiting() {
		if !early && (item.listed || item.initial) {
			return
		}
	}
	i.shown = i.shown || early
	i.synced, i.initial = true, false
	i.oracle.Synced()
}

// settle lets it finish what it has to do.
func (i *toyInformer) settle() {
	for range 10000 {
		switch {
		case len(i.calls) > 0:
			i.finish(0, nil)
		case len(i.waiting()) > 0:
			i.take(1)
		case i.listing || i.epoch != i.server.epoch || i.position < i.server.seq:
			i.read()
		default:
			i.look()
			i.status()
			stored := i.stored()
			for key := range i.lost {
				// What only a run that was killed knew, and is gone, is not missed. After a restore
				// another object can get the same version, by which a storage knows it.
				_, known := i.storage[key]
				now, there := i.server.state[key]
				i.shown = i.shown || (there || known) && i.hand[key].seq != now.seq
			}
			for key := range stored {
				if i.bug == keepsStale {
					stored[key], i.shown = "0", true
				}
			}
			i.oracle.Settled(stored)
			i.count(true)
			return
		}
	}
	panic("never quiet")
}
