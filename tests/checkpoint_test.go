package tests_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// lists are the requests that were lists, watch-lists included, and not those that ask
// for one object only to know whether the server has a version.
func (w *world) lists() (lists []string) {
	for _, verb := range w.verbs() {
		if strings.HasPrefix(verb, "list limit=1 rv=") {
			continue
		}
		if strings.HasPrefix(verb, "list") || strings.HasPrefix(verb, "watch-list") {
			lists = append(lists, verb)
		}
	}
	return lists
}

// An informer that has a checkpoint goes on with a watch: what happened meanwhile is
// told, and nothing is listed.
func TestResumeWithoutAList(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		file := filepath.Join(t.TempDir(), "pods")
		w.create("a/1", "a/2", "a/3")
		var r recorder
		run := func() (i informer.ResourceVersionInformer, stop func()) {
			i = follow(w, informer.InformerConfig{Handler: &r, Checkpoint: informer.FileCheckpoint(file)})
			return i, start(i.RunWithContext)
		}
		i, stop := run()
		synctest.Wait()
		require.True(t, i.HasSynced())
		stop()
		require.Len(t, w.lists(), 1)

		w.update("a/1", "changed")
		w.remove("a/2")
		w.create("a/4")
		r.forget()
		i, stop = run()
		defer stop()
		synctest.Wait()
		time.Sleep(3 * time.Second)
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"update a/1", "delete a/2", "add a/4"}, r.events())
		require.Len(t, w.lists(), 1, "asked: %v", w.verbs())
		require.Equal(t, w.ResourceVersion(), i.Status().ResourceVersion)
		w.requireState(&r)
	})
}

// Where the server has forgotten the version of the checkpoint, a list tells only
// what differs.
func TestResumeAfterTheVersionExpired(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		file := filepath.Join(t.TempDir(), "pods")
		w.create("a/1", "a/2", "a/3")
		var r recorder
		run := func() (i informer.ResourceVersionInformer, stop func()) {
			i = follow(w, informer.InformerConfig{Handler: &r, Checkpoint: informer.FileCheckpoint(file)})
			return i, start(i.RunWithContext)
		}
		_, stop := run()
		synctest.Wait()
		stop()

		w.update("a/1", "changed")
		w.remove("a/2")
		w.create("a/4")
		w.Compact()
		r.forget()
		i, stop := run()
		defer stop()
		synctest.Wait()
		require.True(t, i.HasSynced())
		require.Equal(t, []string{"update a/1", "sync a/3", "add a/4 initial", "delete a/2 unknown"}, r.events())
		w.requireState(&r)
	})
}
