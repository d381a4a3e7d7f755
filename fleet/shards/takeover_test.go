package shards_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// staged runs a test on a play without dice: two processes that share all units, and some objects.
func staged(t *testing.T, test func(t *testing.T, p *play)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlay(t, 1)
		defer p.close()
		p.launch()
		p.launch()
		for range 100 {
			p.write()
		}
		time.Sleep(time.Minute)
		require.Empty(t, p.uncovered())
		p.compare()
		time.Sleep(time.Minute) // checkpoints are saved
		test(t, p)
	})
}

// lists counts the complete sets that were asked of the clusters: lists, and watches that begin
// with all objects.
func (p *play) lists() int {
	n := 0
	for _, s := range p.data {
		for _, r := range s.Requests() {
			resource := r.GroupVersionResource.Resource
			all := r.Verb == "list" && r.Options.Limit != 1 || r.Verb == "watch" && r.Options.SendInitialEvents != nil
			if all && (resource == "configmaps" || resource == "widgets") {
				n++
			}
		}
	}
	return n
}

func TestCrashedReplicasUnitsAreResumedWithoutList(t *testing.T) {
	staged(t, func(t *testing.T, p *play) {
		before, epochs := p.lists(), p.db.epochs()
		require.Positive(t, before)
		p.alive[0].crash()
		for range 20 {
			p.write()
		}
		p.coveredWithin(30 * time.Second)
		p.compare()
		require.Greater(t, p.db.epochs(), epochs)
		require.Equal(t, before, p.lists())
	})
}

func TestHandoverIsWithoutList(t *testing.T) {
	staged(t, func(t *testing.T, p *play) {
		before, epochs := p.lists(), p.db.epochs()
		x := p.launch() // it gets some
		time.Sleep(15 * time.Second)
		require.Greater(t, p.db.epochs(), epochs)
		x.stop() // and gives them back
		p.retire(x)
		p.coveredWithin(3 * time.Second)
		for range 20 {
			p.write()
		}
		p.compare()
		require.Equal(t, before, p.lists())
		require.Zero(t, p.db.refused, "in an orderly handover nobody is refused")
	})
}

// A process stands still in the middle of its transactions, for longer than its lease, and then
// commits them.
func TestFrozenReplicaIsRefused(t *testing.T) {
	staged(t, func(t *testing.T, p *play) {
		frozen := p.alive[0]
		frozen.near.set(func(n *network) { n.reading = true }) // it still reads, so that it has something to write
		frozen.freeze()
		for range 50 {
			p.write()
		}
		time.Sleep(time.Minute)
		for range 50 {
			p.write()
		}
		p.compare()
		require.Zero(t, p.db.refused)
		frozen.heal()
		time.Sleep(time.Minute)
		require.Positive(t, p.db.refused, "what it wanted to write")
		require.Empty(t, p.difference())
		require.Empty(t, p.uncovered())
		require.Empty(t, frozen.Status().Problems)
	})
}
