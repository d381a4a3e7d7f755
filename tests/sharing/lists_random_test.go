package sharing_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// paced is a handler that takes its time.
type paced struct {
	*harness.Recorder
	*informer.HandlerRegistration
	each atomic.Int64 // a time.Duration
}

// sharingDay is a shared informer on a random day.
type sharingDay struct {
	*harness.World
	dice     *rand.Rand
	informer *informer.SharedResourceVersionInformer
	handlers []*paced
	size     int // the most that an object has
	objects  int // those that were created
}

// add adds a handler, which may be slow, may hang for an hour in each call, and may have a budget of
// its own.
func (c *sharingDay) add() {
	p := &paced{}
	switch n := c.dice.IntN(8); {
	case n == 0:
		p.each.Store(int64(time.Hour))
	case n < 4:
		p.each.Store(int64(c.dice.IntN(int(40 * time.Millisecond))))
	}
	p.Recorder = &harness.Recorder{Before: func(string) { time.Sleep(time.Duration(p.each.Load())) }}
	config := informer.HandlerConfig{Handler: p.Recorder}
	if c.dice.IntN(3) == 0 {
		config.Budget = informer.NewBudget(int64(1+c.dice.IntN(100)) << 10)
	}
	var err error
	p.HandlerRegistration, err = c.informer.AddHandler(config)
	require.NoError(c.T, err)
	c.handlers = append(c.handlers, p)
}

func (c *sharingDay) remove() {
	if len(c.handlers) < 2 {
		return
	}
	i := c.dice.IntN(len(c.handlers))
	c.handlers[i].each.Store(0)
	c.informer.RemoveHandler(c.handlers[i].HandlerRegistration)
	c.handlers = append(c.handlers[:i], c.handlers[i+1:]...)
}

func (c *sharingDay) create(n int) {
	for range n {
		_, err := c.Create(harness.Pods, harness.Object(harness.Pods, fmt.Sprintf("a/%05d", c.objects), strings.Repeat("x", 1+c.dice.IntN(c.size))))
		require.NoError(c.T, err)
		c.objects++
	}
}

// change changes or deletes an object, if it is there.
func (c *sharingDay) change() {
	name := fmt.Sprintf("%05d", c.dice.IntN(c.objects+1))
	if c.dice.IntN(2) == 0 {
		_ = c.Delete(harness.Pods, "a", name)
	} else {
		_, _ = c.Update(harness.Pods, harness.Object(harness.Pods, "a/"+name, strings.Repeat("y", 1+c.dice.IntN(c.size))))
	}
}

// hurry has no handler hang.
func (c *sharingDay) hurry() {
	for _, p := range c.handlers {
		p.each.Store(0)
	}
}

func (c *sharingDay) fault() {
	effects := []informertest.Effect{
		informertest.Reset(), informertest.Cut(700), informertest.CutClean(2000), informertest.Hang(), informertest.Status(503), informertest.Status(410),
		informertest.Oversize(1, 1<<20), informertest.DropBookmarks(1),
	}
	verbs := []string{"list", "watch-list", "watch"}
	effect := effects[c.dice.IntN(len(effects))]
	match := informertest.Match{Verbs: verbs[:1+c.dice.IntN(2)]}
	if effect == informertest.DropBookmarks(1) {
		match.Verbs = []string{"watch", "watch-list"}
	}
	c.Inject(informertest.Fault{Match: match, Effect: effect, Skip: c.dice.IntN(3), Times: 1 + c.dice.IntN(3)})
}

// Handlers that come, go, hang, and share lists and a watch, whatever the server does, have what it
// has in the end.
func TestSharedListsOnAnyDay(t *testing.T) {
	modes := []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList, informer.ListModeAuto}
	for seed := range uint64(60) {
		dice := rand.New(rand.NewPCG(seed, 7))
		mode := modes[dice.IntN(len(modes))]
		harness.BubbleRun(t, fmt.Sprint(seed, " ", mode), informertest.Options{OpaqueVersions: dice.IntN(4) == 0, TLS: dice.IntN(3) == 0, Seed: seed + 1}, func(t *testing.T, w *harness.World) {
			c := &sharingDay{World: w, dice: dice, size: 1 << dice.IntN(14)}
			c.create(dice.IntN(300))
			config := informer.InformerConfig{ListMode: mode, WatchListPageSize: int64(1 + dice.IntN(200))}
			if dice.IntN(2) == 0 {
				config.Budget = informer.NewBudget(int64(1+dice.IntN(400)) << 10)
			}
			c.informer = harness.Share(w, config)
			for range 1 + dice.IntN(4) {
				c.add()
			}
			stop := harness.Start(c.informer.RunWithContext)
			for range 15 + dice.IntN(20) {
				switch dice.IntN(9) {
				case 0:
					c.add()
				case 1:
					c.remove()
				case 2:
					c.hurry()
					stop()
					stop = harness.Start(c.informer.RunWithContext)
				case 3:
					c.fault()
				case 4:
					w.CloseClientConnections()
				case 5:
					w.Compact()
					w.CloseClientConnections()
				case 6:
					c.create(dice.IntN(10))
				default:
					c.change()
				}
				time.Sleep(time.Duration(dice.IntN(1 << dice.IntN(32))))
			}
			w.Heal()
			c.hurry()
			time.Sleep(3 * time.Hour)
			for name := range c.objects {
				_, _ = w.Update(harness.Pods, harness.Object(harness.Pods, fmt.Sprintf("a/%05d", name), "readable"))
			}
			time.Sleep(3 * time.Hour)
			for _, p := range c.handlers {
				require.True(t, p.HasSynced())
				w.RequireState(p.Recorder)
				require.Equal(t, informer.ReasonCurrent, p.Status().Condition.Reason, "%v", p.Status().Condition)
			}
			w.RequireOneWatch()
			stop()
		})
	}
}
