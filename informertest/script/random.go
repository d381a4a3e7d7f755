package script

import (
	"fmt"
	"strings"
	"time"

	"github.com/rvinformer/informer/informertest"
)

// Dice decides: a number from 0 to n-1. Smaller numbers stand for simpler things, so that what
// shrinks them, as pgregory.net/rapid does, ends with a simple script.
type Dice func(n int) int

// RandomOptions are what a random script may have in it.
type RandomOptions struct {
	// Duration is how much time it lets pass. Default: one hour.
	Duration time.Duration
	// Writes is about how many changes it makes meanwhile. Default: 200.
	Writes int
	// Shards has each informer follow a part of the set: not for a [Maker] of informers that follow
	// the whole.
	Shards bool
	// Restores has the server restored while no process runs, again and again, and often come to
	// where it was before the next one runs. The informer has a checkpoint, and versions are
	// numbers.
	Restores bool
	// Dialects has one server in two answer as another one than a kube-apiserver over etcd.
	Dialects bool
	// TLS has one server in four speak TLS and HTTP/2.
	TLS bool
}

// Random writes a script: a random history of objects, random faults, handlers, restarts, and a
// random configuration of the informer. In the end it lets all of that go, so that an informer is
// to have what the server has. What is in it, an informer has to survive without losing anything;
// but there are faults that only a list can show, so a list is made in the end.
func Random(d Dice, opts RandomOptions) *Script {
	if opts.Duration == 0 {
		opts.Duration = time.Hour
	}
	if opts.Writes == 0 {
		opts.Writes = 200
	}
	w := &writer{dice: d}
	w.prepare(opts)
	if w.one(4) && !w.shards {
		w.warm()
	} else {
		w.begin("start")
	}
	for w.passed < opts.Duration {
		if opts.Restores && w.one(3) && w.running && !w.vanished {
			w.backWhileDown()
		}
		w.act()
		w.pass(opts)
	}
	w.finish()
	s, err := Parse("random", []byte(w.text.String()))
	if err != nil {
		panic(fmt.Sprintf("a random script that cannot be read: %v", err)) // a mistake in this file
	}
	return s
}

// writer writes a random script.
type writer struct {
	dice Dice
	text strings.Builder

	passed     time.Duration
	churns     int
	witnesses  int
	opaque     bool
	dialect    informertest.Dialect
	unreadable bool // something was
	running    bool
	vanished   bool
	backedUp   bool
	faulty     bool
	checkpoint bool
	rewinds    bool
	restores   bool
	shards     bool
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

func (w *writer) pick(of ...string) string { return of[w.dice(len(of))] }

// one is true one time out of n; false is simpler.
func (w *writer) one(n int) bool { return w.dice(n) == n-1 }

func (w *writer) prepare(opts RandomOptions) {
	var server []string
	if w.opaque = !opts.Restores && w.one(8); w.opaque {
		server = append(server, "versions=opaque")
	}
	if w.one(2) {
		server = append(server, "gzip=1")
	}
	if w.one(2) {
		server = append(server, "gzip-watches=on")
	}
	if opts.TLS && w.one(4) {
		server = append(server, "tls=on")
	}
	if w.shards = opts.Shards; w.shards && w.one(2) {
		server = append(server, "shards=on")
	}
	if opts.Dialects && !opts.Restores && w.one(2) {
		name := w.pick(days...)
		w.dialect = dialects[name]
		server = append(server, "dialect="+name)
	}
	if len(server) > 0 {
		w.line("server %s", strings.Join(server, " "))
	}
	if w.shards {
		w.shard()
	}
	w.informer(opts)
	w.handler()
	w.restores = opts.Restores
	w.rewinds = !opts.Restores && w.one(4) && tellsAll(w.dialect)
	w.line("fill %d", w.dice(60))
}

// warm has an informer begin with what there was a while ago. It has a while to save that: a new
// process begins with nothing else.
func (w *writer) warm() {
	w.line("warm")
	w.churns++
	w.line("churn %d seed=%d", 1+w.dice(30), w.churns)
	w.begin("start")
	w.line("wait 1m")
}

func (w *writer) informer(opts RandomOptions) {
	words := []string{
		"list=" + w.pick("auto", "paged", "watch-list", "full"),
		"decode=" + w.pick("unstructured", "raw", "metadata", "typed"),
		"media=" + w.pick("json", "protobuf"),
	}
	for _, option := range []string{
		"page=" + w.pick("0", "1", "7", "50"),
		"budget=" + w.pick("0", "5000", "1"),
		"workers=" + w.pick("0", "4"),
		"batch=" + w.pick("0", "1", "20"),
		"attempts=" + w.pick("0", "0", "1", "3"),
		"stall=" + w.pick("0s", "2m"),
	} {
		if !strings.HasSuffix(option, "=0") && !strings.HasSuffix(option, "=0s") {
			words = append(words, option)
		}
	}
	if w.one(4) {
		words = append(words, "synced=ignored")
	}
	if w.checkpoint = opts.Restores || w.one(2); w.checkpoint {
		words = append(words, "checkpoint="+w.pick("on", "journal"), "interval="+w.pick("0s", "1s", "30s"), "changes="+w.pick("0", "1", "7"))
	}
	w.line("informer %s", strings.Join(words, " "))
}

// shard has any range followed; often it has something in common with the one before.
func (w *writer) shard() {
	if w.one(6) {
		w.line("shard all")
		return
	}
	n := 1 + w.dice(8)
	from := w.dice(n)
	text := fmt.Sprintf("shard %d-%d/%d", from, from+w.dice(n-from), n)
	if w.one(8) {
		text += " by=namespace"
	}
	w.line("%s", text)
}

func (w *writer) handler() {
	w.line("handler slow=%s errors=%s panics=%s exits=%s",
		w.pick("0s", "20ms", "3s"), w.pick("0", "10", "2"), w.pick("0", "0", "12", "2"), w.pick("0", "0", "0", "10"))
}

func (w *writer) begin(line string) {
	w.line("%s", line)
	w.running = true
}

// act is one thing that happens, or none.
func (w *writer) act() {
	switch w.dice(26) {
	case 1, 2, 3, 4, 5, 6:
		w.line("fault %s", w.fault())
		w.faulty = true
	case 7, 8:
		if w.faulty {
			w.line("heal")
			w.faulty = false
		}
	case 9, 10:
		w.line("disconnect")
	case 11:
		w.line("compact")
	case 12:
		w.line("compact odds=%s", w.pick("2", "5", "1"))
		w.faulty = true
	case 13, 14:
		w.restart()
	case 15, 16:
		w.kill()
	case 17:
		w.handler()
	case 18:
		w.vanish()
	case 19:
		w.travel()
	case 0:
		if w.shards {
			w.shard()
			w.restart()
		}
	case 20, 21, 22:
		w.line("audit %s", w.pick("", "repair", "speed=2000", "repair speed=500"))
	case 23, 24, 25:
		if w.restores { // until one is noticed, the informer knows what the server has lost
			return
		}
		w.line("redeliver %s", w.pick("", "speed=1", "speed=20", "ns0/pod-0 ns1/pod-1 ns2/pod-2 none/none", "ns0/pod-3 ns1/pod-4 ns2/pod-5 speed=1"))
	}
}

// pass lets time pass, and objects change.
func (w *writer) pass(opts RandomOptions) {
	d := []time.Duration{time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour}[w.dice(5)]
	w.passed += d
	w.line("wait %v", d)
	if n := w.dice(2) * (1 + int(float64(opts.Writes)*float64(d)/float64(opts.Duration))); n > 0 {
		w.churns++
		every := w.pick("0s", "500ms", "2s")
		w.line("churn %d keys=%d every=%s seed=%d", n+w.dice(n), 30+30*w.dice(3), every, w.churns)
	}
}

func (w *writer) fault() string {
	var words []string
	switch w.dice(5) {
	case 4: // of some parameters
		words = append(words, w.pick(
			"without=limit 429 retry-after=1", "list page=first without=resourceVersion 429 retry-after=1", "watch-list without=resourceVersion 429 retry-after=30",
			"with=sendInitialEvents 422", "with=allowWatchBookmarks 422", "with=limit 422", "with=limit 400", "with=shardSelector 422", "with=resourceVersionMatch 422"))
	case 0: // of any request
		if of := w.pick("", "list", "watch", "watch-list", "list,watch,watch-list,get"); of != "" {
			words = append(words, of)
		}
		words = append(words, w.effect("500", "503", "429 retry-after=2", "401", "403", "404", "410", "reset", "hang", "cut=%d", "cut=%d,clean", "slow=%d", "goaway", "goaway=3s", "delay=20ms", "delay=5s"))
	case 3: // of a list
		words = append(words, w.effect("list repeat-token", "list foreign", "list page=later 500", "list corrupt=%d", "list wrong-checksum"))
	case 1: // of the content of a stream
		words = append(words, w.effect(
			"no-bookmarks", "drop-bookmarks=2", "ignore-watch-list", "refuse-watch-list", "endless-watch-list",
			"close", "close=5m", "error-event=410", "error-event=410,late", "error-event=500", "error-event=500,late", "garbage=%d", "mistyped=%d", "unversioned=%d", "corrupt=%d", "wrong-checksum", w.ordered("repeat=3")))
	case 2: // of the server
		words = append(words, w.pick("refuse", w.ordered("lag")))
	}
	if limit := w.pick("times=1", "times=5", "odds=2", "odds=5", ""); limit != "" {
		words = append(words, limit)
	}
	return strings.Join(words, " ")
}

// days are the dialects that a day can have: each object has a version of its own, by which it can be
// judged what was told of it.
var days = []string{"kine", "unmarked", "polled", "replaying", "computed", "porch", "openshift", "openshift-ignoring"}

// ordered is a fault that takes back in time: it can be told only from versions that have an order, and
// that lists and watches share.
func (w *writer) ordered(fault string) string {
	if w.opaque || !tellsAll(w.dialect) {
		return "reset"
	}
	return fault
}

func (w *writer) effect(of ...string) string {
	effect := w.pick(of...)
	switch {
	case strings.HasPrefix(effect, "garbage"), strings.HasPrefix(effect, "mistyped"), strings.HasPrefix(effect, "unversioned"):
		w.unreadable = true
		return fmt.Sprintf(effect, 1+w.dice(20))
	case strings.Contains(effect, "%d"):
		return fmt.Sprintf(effect, 1+w.dice(3000))
	}
	return effect
}

func (w *writer) restart() {
	if !w.running {
		w.begin("start")
		return
	}
	w.line("stop")
	w.running = false
	if !w.one(3) { // else it stays away for a while
		w.begin(strings.TrimSpace("start " + w.pick("", "again", "new")))
	}
}

func (w *writer) kill() {
	if !w.running {
		w.begin("start")
		return
	}
	if w.one(2) {
		w.line("fuse %d", 1+w.dice(25))
		w.churns++
		w.line("churn %d every=500ms seed=%d", 1+w.dice(10), w.churns)
	}
	w.line("kill")
	w.running = false
	if !w.one(3) {
		w.begin("start")
	}
}

// settle waits for longer where lists have no version: an empty one is believed after an hour only.
func (w *writer) settle() {
	if tellsAll(w.dialect) {
		w.line("settle")
	} else {
		w.line("settle 2h")
	}
}

func (w *writer) vanish() {
	if w.dialect.Lists == informertest.VersionOfItems {
		return // its empty list has no version, which deletes nothing where one was known
	}
	if w.vanished {
		w.line("return")
	} else {
		w.line("vanish")
	}
	w.vanished = !w.vanished
}

// travel is into the past of the server. It cannot be noticed once the server has come back to
// where it was, so the informer is left in peace until it has; a resource that has vanished would
// keep it from listing.
func (w *writer) travel() {
	switch {
	case !w.rewinds || !w.running || w.vanished:
	case !w.opaque && w.one(2):
		w.back(fmt.Sprintf("rewind %d", 1+w.dice(30)))
	case !w.backedUp:
		w.line("backup")
		w.backedUp = true
	default:
		w.back("restore")
		w.backedUp = false
	}
}

func (w *writer) back(line string) {
	w.line("heal")
	w.line("wait 1s") // a change that went back unseen cannot be known
	w.line("%s", line)
	w.line("wait 10m")
	w.faulty = false
}

// backWhileDown restores the server while no process runs. The newest change is one that the
// checkpoint has, and that the server loses: nothing else need tell that it was restored.
func (w *writer) backWhileDown() {
	w.line("heal")
	w.line("handler")
	w.faulty = false
	w.line("backup")
	w.churns++
	w.line("churn %d keys=90 seed=%d", 1+w.dice(60), w.churns)
	w.line("wait 30m")
	w.witnesses++
	w.line("create witness/w-%d", w.witnesses)
	w.line("wait 5m")
	w.passed += 35 * time.Minute
	w.line("kill")
	w.line("restore down=%s", w.pick("10s", "0s"))
	w.churns++
	w.line("churn %d keys=%d seed=%d", 1+w.dice(200), 1+w.dice(30), w.churns)
	w.begin("start")
	w.line("wait 10m")
}

// finish ends in peace.
func (w *writer) finish() {
	if w.vanished {
		w.vanish()
	}
	w.line("heal")
	if !w.running {
		w.begin("start")
	}
	if w.unreadable { // a list is what tells of it
		w.line("relist")
	}
	w.settle()
	w.line("relist")
	w.line("settle")
	w.line("churn 5")
	w.line("settle 5m")
}
