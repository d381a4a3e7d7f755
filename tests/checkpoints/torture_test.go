package checkpoints_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/testkit/savedstate"
	"github.com/rvinformer/informer/tests/harness"
)

// TestTortureRestarts kills and stops an informer with a checkpoint again and again, at
// any moment, while random objects, faults and configurations meet, and checks each call,
// each checkpoint that is left, and what the handler knows in the end. INFORMER_TORTURE=n
// runs n seeds, INFORMER_TORTURE_FROM says from which one on.
func TestTortureRestarts(t *testing.T) {
	harness.SurvivePanics(t)
	from, seeds := harness.EnvInt("INFORMER_TORTURE_FROM", 1), harness.EnvInt("INFORMER_TORTURE", 10)
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("again, perhaps a few times: INFORMER_TORTURE=1 INFORMER_TORTURE_FROM=%d go test -race -count=20 -run 'TestTortureRestarts/seed=%d$' .", seed, seed)
				}
			}()
			tortureRestarts(t, uint64(seed))
		})
	}
}

func tortureRestarts(t *testing.T, seed uint64) {
	f := &harness.Faults{Dice: harness.Dice{Rand: rand.New(rand.NewPCG(seed, 11))}}
	o := &ordeal{
		Dice: harness.Dice{Rand: rand.New(rand.NewPCG(seed, 12))}, chance: harness.Dice{Rand: rand.New(rand.NewPCG(seed, 13))}, faults: f,
		hand: map[string]keytable.Version{}, unsure: map[string]bool{}, dirty: map[string]bool{}, excused: map[string]bool{},
	}
	harness.Bubble(t, informertest.Options{Wrap: o.watched}, func(t *testing.T, w *harness.World) {
		f.World, o.World = w, w
		o.prepare()
		defer func() { o.life.stop() }()
		for range 15 + o.N(25) {
			o.act()
		}
		o.settle()
	})
}

// ordeal is one seed's run. What a crash leaves is here: what the handler has taken in
// (its database), and the checkpoint.
type ordeal struct {
	*harness.World
	harness.Dice
	faults *harness.Faults
	chance harness.Dice // for events inside of handlers and stores

	config  informer.InformerConfig
	batches bool
	// slow, fails and panics are of the handler: how much, and one time out of how many.
	slow, fails, panics int
	// full is one Save out of how many that fails.
	full    int
	rewinds bool
	life    *life
	lives   int

	mu      sync.Mutex
	content []byte
	hand    map[string]keytable.Version
	// unsure are the keys whose last call failed. Dirty are those that the life under
	// way knew otherwise than the handler when it began.
	unsure, dirty map[string]bool
	// journaled: the store takes a journal. Written: it has each key before the handler is called
	// for it. Where a store fails, the handler is called all the same.
	journaled, written bool
	// excused are keys that only a crashed process knew and that were gone when a list was
	// made, and that the store may lack. Their deletion may be lost.
	excused map[string]bool
	// rewound: the order of versions means nothing any more. Lost: a key was passed over.
	rewound, lost bool
	wrong, calls  []string
}

// life is a process: from its start until it is killed or stopped.
type life struct {
	*ordeal
	number   int
	informer informer.ResourceVersionInformer
	storage  *informer.ResourceVersionStorage
	stop     func()

	// fuse is the number of steps until it is killed, 0 for never.
	fuse int
	dead bool
	died chan struct{}
	// resumed: it went on from a version, so that it may tell of deletions of objects that it
	// does not know.
	resumed bool
	blind   int // how many Loads fail
	known   map[string]keytable.Version
	begun   map[string]bool   // keys that a process before may have told of
	told    map[string]uint64 // the newest version of each key
	busy    map[string]bool
	failed  map[string]int
	saved   bool
	lists   int
}

func (o *ordeal) prepare() {
	if o.One(2) {
		o.CreateKubeSystem()
	}
	for range o.N(40) {
		o.faults.Touch()
	}
	modes := []informer.ListMode{informer.ListModeAuto, informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList}
	examples := []runtime.Object{nil, &unstructured.Unstructured{}, &informer.RawObject{}, &metav1.PartialObjectMetadata{}, &corev1.Pod{}}
	o.config = informer.InformerConfig{
		WatchListPageSize:  int64(1 + o.N(30)),
		ListMode:           modes[o.N(4)],
		Workers:            1 + o.N(4),
		ExampleObject:      examples[o.N(len(examples))],
		ErrorHandler:       harness.IgnoreErrors,
		CheckpointInterval: []time.Duration{0, time.Second, 30 * time.Second}[o.N(3)],
		CheckpointChanges:  []int{0, 1, 7}[o.N(3)],
		MaxBatch:           1 + o.N(20),
	}
	if o.One(2) {
		o.config.StallTimeout = 2 * time.Minute
	}
	o.batches = o.One(2)
	o.slow = []int{0, 20, 3000}[o.N(3)]
	o.fails = []int{0, 0, 4}[o.N(3)]
	o.panics = []int{0, 0, 12, 3}[o.N(4)]
	o.full = []int{0, 0, 3}[o.N(3)]
	o.rewinds = o.One(4)
	o.journaled = o.One(2)
	o.written = o.journaled && o.full == 0
	o.begin()
}

// begin starts a process with what is left of those before.
func (o *ordeal) begin() {
	o.lives++
	l := &life{
		ordeal: o, number: o.lives, storage: informer.NewResourceVersionStorage(), died: make(chan struct{}),
		known: map[string]keytable.Version{}, begun: map[string]bool{}, told: map[string]uint64{}, busy: map[string]bool{}, failed: map[string]int{},
	}
	if o.One(25) {
		l.blind = 1 + o.N(4)
	}
	o.mu.Lock()
	if o.content != nil {
		left := harness.ReadSaved(o.T, o.content)
		l.known, l.resumed = left.Versions, left.Resume != ""
		for key := range left.Begun {
			l.begun[key] = true
		}
		for key, v := range l.known {
			l.told[key] = versionNumber(v.ResourceVersion)
		}
		for key := range o.excused { // of those that are gone since, a watch tells again
			if l.resumed && !o.rewound && versionNumber(goneIn(o.faults, key)) > versionNumber(left.Resume) {
				delete(o.excused, key)
			}
		}
	}
	clear(o.unsure)
	clear(o.dirty)
	for key, v := range o.hand {
		if l.known[key] != v {
			o.dirty[key] = true
		}
	}
	for key := range l.known {
		if _, ok := o.hand[key]; !ok {
			o.dirty[key] = true
		}
	}
	for key := range l.begun {
		o.dirty[key] = true
	}
	o.calls = append(o.calls, fmt.Sprintf("%s life %d, resumed %v, blind %v, dirty %v", now(), l.number, l.resumed, l.blind, o.dirty))
	o.life = l
	o.mu.Unlock()
	l.make()
	l.stop = harness.Start(l.informer.RunWithContext)
}

func now() string { return time.Now().Format("15:04:05.000") }

func versionNumber(rv string) uint64 {
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// goneIn is the version of the last deletion of a key.
func goneIn(f *harness.Faults, key string) (version string) {
	f.Untouched(func(gone map[string]string) { version = gone[key] })
	return version
}

// make makes the informer of a process.
func (l *life) make() {
	client := l.Config()
	client.UserAgent = fmt.Sprint("life ", l.number)
	factory, err := informer.NewDynamicListerWatcherFactory(client)
	require.NoError(l.T, err)
	config := l.config
	config.ListerWatcher = factory.ForResource("", harness.Pods)
	config.Storage = l.storage
	config.Checkpoint = lifeStore{l}
	if l.journaled {
		config.Checkpoint = lifeJournal{lifeStore{l}}
	}
	config.Budget = informer.NewBudget(int64(1 + l.N(5000)))
	hearsSync := l.rewinds || l.One(2)
	switch {
	case l.batches && hearsSync:
		config.BatchHandler = informer.BatchHandlerFunc(l.onBatch)
	case l.batches:
		config.BatchHandler = informer.IgnoreSynced(informer.BatchHandlerFunc(l.onBatch))
	case hearsSync:
		config.Handler = l
	default:
		config.Handler = informer.ResourceEventHandlerDetailedFuncs{AddFunc: l.OnAdd, UpdateFunc: l.OnUpdate, DeleteFunc: l.OnDelete}
	}
	l.informer = informer.NewResourceVersionInformer("pods", config)
}

// asksForOne reports whether a request asks for one object by its name.
func asksForOne(r *http.Request) bool {
	return strings.Contains(r.URL.Query().Get("fieldSelector"), "metadata.name=")
}

// watched notes the lists that a process asks for.
func (o *ordeal) watched(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods") && (!harness.IsWatch(r) || harness.IsWatchList(r)) && !asksForOne(r) {
			o.listing(r.UserAgent())
		}
		server.ServeHTTP(w, r)
	})
}

func (o *ordeal) listing(agent string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.life
	if l == nil || l.dead || agent != fmt.Sprint("life ", l.number) {
		return
	}
	l.lists++
	for key := range o.dirty {
		_, handed := o.hand[key]
		if _, known := l.known[key]; handed && !known && !o.written {
			o.excused[key] = true
		}
	}
}

// listed is how many lists the process has asked for.
func (o *ordeal) listed() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.life.lists
}

// burnLocked is called at every step; it is false if the process is dead.
func (l *life) burnLocked() (alive bool) {
	if l.fuse--; l.fuse == 0 {
		l.dieLocked()
	}
	return !l.dead
}

func (l *life) dieLocked() {
	if !l.dead {
		l.dead = true
		close(l.died)
	}
}

// lifeStore is the checkpoint of all lives, as one of them uses it.
type lifeStore struct{ *life }

func (s lifeStore) Load(context.Context) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.dead || s.content == nil:
		return nil, fs.ErrNotExist
	case s.blind > 0:
		s.blind--
		return nil, errors.New("blind")
	}
	s.burnLocked()
	return io.NopCloser(bytes.NewReader(s.content)), nil
}

func (s lifeStore) Save(ctx context.Context, write func(io.Writer) error) error {
	s.mu.Lock()
	begun := len(s.content)
	s.mu.Unlock()
	var b bytes.Buffer
	if err := write(burning{s.life, &b}); err != nil {
		return err
	}
	time.Sleep(time.Duration(s.chance.N(200)) * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.burnLocked():
		return nil
	case s.chance.One(s.full):
		return errors.New("full")
	}
	s.content, s.saved = append(b.Bytes(), s.content[begun:]...), true
	s.calls = append(s.calls, now()+" saved")
	s.burnLocked()
	return ctx.Err() // it may be either
}

// lifeJournal is a lifeStore that takes a journal.
type lifeJournal struct{ lifeStore }

func (s lifeJournal) Append(_ context.Context, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.burnLocked() {
		return nil
	}
	s.content = slices.Concat(s.content, b)
	s.calls = append(s.calls, fmt.Sprintf("%s appended %d", now(), len(b)))
	s.burnLocked()
	return nil
}

func (s lifeJournal) Sync(context.Context) error { return nil }

type burning struct {
	*life
	w io.Writer
}

func (b burning) Write(p []byte) (int, error) {
	b.mu.Lock()
	b.burnLocked()
	b.mu.Unlock()
	return b.w.Write(p)
}

func (l *life) OnAdd(obj interface{}, _ bool) { l.call(informer.Added, obj) }
func (l *life) OnUpdate(_, obj interface{})   { l.call(informer.Updated, obj) }
func (l *life) OnDelete(obj interface{})      { l.call(informer.Deleted, obj) }
func (l *life) OnSync(obj interface{})        { l.call(informer.Synced, obj) }

// tale is one event of a key.
type tale struct {
	change  informer.EventType
	key     string
	version keytable.Version
	unknown bool
}

func (l *life) call(change informer.EventType, obj interface{}) {
	told := tale{change: change, key: harness.Key(obj)}
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		told.unknown, obj = true, tombstone.Obj
	}
	told.version = versionIn(obj)
	if err := l.takeIn([]tale{told}); err != nil {
		panic(err)
	}
}

func versionIn(obj interface{}) keytable.Version {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return keytable.Version{UID: types.UID(strings.Clone(string(accessor.GetUID()))), ResourceVersion: strings.Clone(accessor.GetResourceVersion())}
}

func (l *life) onBatch(_ context.Context, events []informer.Event) error {
	var told []tale
	for _, e := range events {
		told = append(told, tale{e.Type, e.Key, versionIn(e.Object), e.FinalStateUnknown})
	}
	err := l.takeIn(told)
	if l.chance.One(2) && err != nil {
		panic(err)
	}
	return err
}

// takeIn checks what the handler is told, and takes it in, or a part of it, before it
// fails or dies.
func (l *life) takeIn(told []tale) error {
	taken := 0
	l.mu.Lock()
	for _, e := range told {
		l.checkLocked(e)
	}
	if l.chance.One(2) { // some of it at once
		for taken < len(told) && l.chance.One(2) && l.burnLocked() {
			l.foldLocked(told[taken])
			taken++
		}
	}
	l.burnLocked()
	l.mu.Unlock()

	if l.slow > 0 {
		time.Sleep(time.Duration(l.chance.N(l.slow)) * time.Millisecond)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range told {
		l.busy[e.key] = false
	}
	if l.chance.One(l.panics) || l.batches && l.chance.One(l.fails) {
		for taken < len(told) && l.chance.One(2) && l.burnLocked() {
			l.foldLocked(told[taken])
			taken++
		}
		for _, e := range told {
			if !l.dead {
				l.unsure[e.key] = true
			}
			if l.failed[e.key]++; l.failed[e.key] > 5 { // perhaps in a row
				l.lost = true
			}
		}
		return errors.New("failed")
	}
	for ; taken < len(told) && l.burnLocked(); taken++ {
		l.foldLocked(told[taken])
	}
	if l.dead {
		return nil
	}
	for _, e := range told {
		delete(l.unsure, e.key)
		delete(l.dirty, e.key)
		delete(l.excused, e.key)
	}
	l.burnLocked()
	return nil
}

func (l *life) foldLocked(e tale) {
	if e.change == informer.Deleted {
		delete(l.hand, e.key)
	} else {
		l.hand[e.key] = e.version
	}
}

func (l *life) checkLocked(e tale) {
	if l.dead {
		return
	}
	call := fmt.Sprintf("%s %s %s %s", now(), e.change, e.key, e.version.ResourceVersion)
	if e.unknown {
		call += " unknown"
	}
	l.calls = append(l.calls, call)
	wrong := func(format string, args ...interface{}) {
		l.wrong = append(l.wrong, call+": "+fmt.Sprintf(format, args...))
	}
	if l.busy[e.key] {
		wrong("beside another call")
	}
	l.busy[e.key] = true
	v := versionNumber(e.version.ResourceVersion)
	if !l.rewound && !e.unknown {
		if v < l.told[e.key] && !l.unsure[e.key] {
			wrong("back in time from %d", l.told[e.key])
		}
		l.told[e.key] = v
	}
	if e.change == informer.Deleted && e.version.UID != "" && l.alive(e.key, e.version.UID) {
		wrong("it lives")
	}
	if l.unsure[e.key] || l.dirty[e.key] {
		return
	}
	has, knows := l.hand[e.key]
	switch {
	case e.change == informer.Added && knows:
		wrong("known in version %s", has.ResourceVersion)
	case e.change == informer.Deleted && !knows && l.resumed: // it may have been known
	case e.change != informer.Added && !knows:
		wrong("not known")
	case e.change == informer.Synced && has != e.version:
		wrong("known in version %s", has.ResourceVersion)
	case e.change == informer.Updated && has.UID != e.version.UID:
		wrong("another object")
	case e.change == informer.Deleted && has.UID != e.version.UID:
		wrong("known was another object")
	}
}

func (o *ordeal) alive(key string, uid types.UID) bool {
	namespace, name, _ := strings.Cut(key, "/")
	obj, err := o.Get(harness.Pods, namespace, name)
	return err == nil && obj.GetUID() == uid
}

func (o *ordeal) act() {
	switch o.N(20) {
	case 0:
		o.CloseClientConnections()
	case 1:
		o.Compact()
	case 2:
		o.faults.Break()
	case 3, 4, 5:
		o.Heal()
	case 6, 7, 8, 9:
		o.kill()
	case 10, 11:
		o.stopAndGoOn()
	case 12:
		o.Blocked.Lock()
		o.CloseClientConnections()
		o.touchAround(20)
		time.Sleep(time.Duration(o.N(300)) * time.Second)
		o.Blocked.Unlock()
	case 13:
		time.Sleep(time.Duration(o.N(1200)) * time.Second)
	default:
		o.touchAround(10)
	}
}

// touchAround changes some objects, and lets some time pass.
func (o *ordeal) touchAround(most int) {
	for range 1 + o.N(most) {
		o.faults.Touch()
		if o.One(3) {
			time.Sleep(time.Duration(o.N(800)) * time.Millisecond)
		}
	}
}

// whileDown is what happens while no process runs.
func (o *ordeal) whileDown() {
	for range o.N(12) {
		o.faults.Touch()
	}
	if o.One(4) {
		o.faults.Touch()
		o.Compact()
	}
	if o.rewinds && o.One(4) {
		o.mu.Lock()
		o.rewound = true
		o.mu.Unlock()
		o.SetResourceVersion(max(2, versionNumber(o.ResourceVersion())-min(uint64(o.N(30)), versionNumber(o.ResourceVersion())-2)))
		for range o.N(5) {
			o.faults.Touch()
		}
	}
}

// kill ends the process at any moment, and starts another.
func (o *ordeal) kill() {
	l := o.life
	o.mu.Lock()
	l.fuse = 1 + o.N(25)
	o.mu.Unlock()
	o.touchAround(6)
	select {
	case <-l.died:
	case <-time.After(time.Duration(o.N(3000)) * time.Millisecond):
	}
	o.mu.Lock()
	l.dieLocked()
	o.calls = append(o.calls, now()+" killed")
	content := o.content
	o.mu.Unlock()
	o.checkContent(content)
	o.whileDown()
	o.begin()
	l.stop()
}

// stopAndGoOn stops the process and goes on with the same informer, with another one on
// the same storage, or with another process.
func (o *ordeal) stopAndGoOn() {
	l := o.life
	l.stop()
	synctest.Wait()
	o.mu.Lock()
	content := o.content
	o.calls = append(o.calls, now()+" stopped")
	if o.full == 0 && content != nil {
		o.checkLeftLocked(harness.ReadSaved(o.T, content))
	}
	o.mu.Unlock()
	o.checkContent(content)
	o.whileDown()
	switch o.N(3) {
	case 0:
		l.goOn()
	case 1:
		l.make()
		l.goOn()
	default:
		o.begin()
	}
}

// goOn runs the informer again. It may resume now, from before what it has told last: an
// object that came and went since comes again.
func (l *life) goOn() {
	l.mu.Lock()
	l.resumed = true
	clear(l.told)
	for key, version := range l.storage.All() {
		l.told[key] = versionNumber(version)
	}
	l.mu.Unlock()
	l.stop = harness.Start(l.informer.RunWithContext)
}

// checkLeftLocked checks that a checkpoint that was saved at the end of a Run has all that
// the handler knows.
func (o *ordeal) checkLeftLocked(left *savedstate.Content) {
	for key, v := range o.hand {
		switch has, ok := left.Versions[key]; {
		case o.dirty[key] || o.excused[key]:
		case !ok && left.Begun[key]:
		case !ok:
			require.Fail(o.T, "not in the checkpoint", "%s, unsure %v, calls %s", key, o.unsure[key], o.story())
		case !o.unsure[key]:
			require.Equal(o.T, v, has, "%s, calls %s", key, o.story())
		}
	}
	for key := range left.Versions {
		if _, ok := o.hand[key]; !ok && !o.dirty[key] && !o.unsure[key] {
			require.Fail(o.T, "in the checkpoint, but not known to the handler", "%s, calls %s", key, o.story())
		}
	}
}

// checkContent checks that a checkpoint with a resource version has all up to there, but for dead
// letters, which it passes.
func (o *ordeal) checkContent(content []byte) {
	if content == nil {
		return
	}
	left := harness.ReadSaved(o.T, content)
	if o.rewound || left.Resume == "" {
		return
	}
	o.faults.Untouched(func(gone map[string]string) {
		server := o.Versions()
		for key, version := range server {
			if notAfter(version, left.Resume) && left.Dead[key] == "" {
				require.True(o.T, notAfter(version, left.Versions[key].ResourceVersion), "%s: server %s, checkpoint %s to %s; %s", key, version, left.Versions[key], left.Resume, o.story())
			}
		}
		for key, version := range gone {
			if server[key] == "" && notAfter(version, left.Resume) && left.Dead[key] == "" {
				require.NotContains(o.T, left.Versions, key, "deleted in %s, checkpoint to %s; %s", version, left.Resume, o.story())
			}
		}
	})
}

// notAfter is false where one of the versions is empty.
func notAfter(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order <= 0
}

func (o *ordeal) story() string { return "\n" + strings.Join(o.calls, "\n") }

// settle takes all faults away, waits, and checks what is left.
func (o *ordeal) settle() {
	o.mu.Lock()
	o.panics, o.fails, o.full = 0, 0, 0
	o.life.fuse = 0
	dead, lost := o.life.dead, o.lost
	o.mu.Unlock()
	require.False(o.T, dead)
	o.Heal()
	time.Sleep(40 * time.Minute) // a silent watch may last for half an hour
	if !lost && !o.rewound {
		o.check("without a list")
	}
	for lists := o.listed(); o.listed() == lists; {
		o.faults.Touch()
		o.Relist()
	}
	o.check("after a list")

	// What is left when it stops is all that is needed.
	o.life.stop()
	o.begin()
	o.mu.Lock()
	calls := len(o.calls)
	o.mu.Unlock()
	time.Sleep(5 * time.Minute) // a store that fails is tried for a while
	o.check("after a restart")
	require.Zero(o.T, o.listed())
	require.Empty(o.T, o.calls[calls:], o.story())
	o.faults.Touch()
	time.Sleep(time.Minute)
	o.check("after one more change")
}

func (o *ordeal) check(when string) {
	status := o.life.informer.Status()
	stored := maps.Collect(o.life.storage.All())
	server := o.Versions()
	o.mu.Lock()
	defer o.mu.Unlock()
	told := fmt.Sprintf("%s; config %+v; status %+v; excused %v; calls %s", when, o.config, status, o.excused, o.story())
	require.Empty(o.T, o.wrong, told)
	known := map[string]string{}
	for key, v := range o.hand {
		if _, lives := server[key]; !lives && o.excused[key] {
			continue
		}
		known[key] = v.ResourceVersion
	}
	require.Equal(o.T, server, known, "handler %s", told)
	require.Equal(o.T, server, stored, "Storage %s", told)
	require.True(o.T, status.Synced, told)
	require.Equal(o.T, informer.PhaseWatching, status.Phase, told)
	require.Zero(o.T, status.Queued, told)
	require.NoError(o.T, status.LastError, told)
	require.NotEmpty(o.T, status.ResourceVersion, told)
}
