package checkpoints_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// twoClusters are two clusters that one address leads to, one after the other.
type twoClusters struct {
	*harness.World                // the first
	second         *harness.World // the other
	handler        http.Handler   // of the second
	replaced       atomic.Bool    // the address leads to the second
	forbidden      bool           // kube-system is
	hanging        atomic.Bool    // kube-system does not answer
	stopped        chan struct{}  // closed when the first stops, which ends its answers
}

// inTwoClusters runs test in a bubble. Both clusters have as many objects of the same names,
// in the same versions; the second one has come further.
func inTwoClusters(t *testing.T, forbidden bool, test func(t *testing.T, c *twoClusters)) {
	t.Helper()
	c := &twoClusters{forbidden: forbidden}
	route := func(first http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			asksCluster := strings.HasSuffix(r.URL.Path, "/namespaces/kube-system")
			switch {
			case asksCluster && c.forbidden:
				harness.FailWith(rw, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			case asksCluster && c.hanging.Load():
				<-r.Context().Done()
			case c.replaced.Load():
				c.handler.ServeHTTP(rw, r)
			default:
				ctx, cancel := context.WithCancel(r.Context())
				defer cancel()
				go func() {
					select {
					case <-c.stopped:
						cancel()
					case <-ctx.Done():
					}
				}()
				first.ServeHTTP(rw, r.WithContext(ctx))
			}
		})
	}
	harness.Bubble(t, informertest.Options{Wrap: route}, func(t *testing.T, w *harness.World) {
		c.World, c.stopped = w, make(chan struct{})
		second := informertest.NewServer(informertest.Options{InMemory: true, Wrap: func(h http.Handler) http.Handler {
			c.handler = h
			return h
		}})
		defer second.Close()
		c.second = &harness.World{T: t, Server: second}
		for _, w := range []*harness.World{c.World, c.second} {
			w.CreateKubeSystem()
			w.CreatePods(harness.Keys(3)...)
		}
		c.second.CreatePods(harness.Keys(20)[3:]...)
		test(t, c)
	})
}

// replace has the address lead to the second cluster.
func (c *twoClusters) replace() {
	c.replaced.Store(true)
	c.CloseClientConnections()
}

// replacedEvents are what a handler of the first is to be told of the second.
func replacedEvents() (events []string) {
	for _, key := range harness.Keys(3) {
		events = append(events, "delete "+key+" unknown", "add "+key)
	}
	return events
}

func TestCheckpointOfAnotherClusterIsRecognizedByItsObjects(t *testing.T) {
	for name, objects := range map[string]int{"with objects": 3, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
				if objects == 0 {
					c.DeletePods(harness.Keys(3)...)
				}
				s := c.Lived(&harness.Recorder{})
				before := s.Bytes()
				c.replace()
				var f harness.Failures
				r := &harness.Recorder{}
				i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle})
				stop := c.Run(i)
				time.Sleep(time.Minute)
				harness.RequireAwaited(t, i, informer.ErrCheckpointSource)
				require.Empty(t, r.Events())
				stop()
				require.Equal(t, before, s.Bytes(), "it is another's")
				refusals := harness.Only[*informer.CheckpointSourceError](&f)
				require.NotEmpty(t, refusals)
				require.ErrorIs(t, refusals[0], informer.ErrCheckpointSource)
				require.Equal(t, "cluster", refusals[0].Differences[0].Field)
			})
		})
	}
}

// A Run that ends while it asks the server which cluster the checkpoint is of leaves that question to
// the next Run.
func TestCheckpointOfAnotherClusterIsRecognizedAfterARunThatEndsWhileItAsks(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		s := c.Lived(&harness.Recorder{})
		before := s.Bytes()
		c.replace()
		ctx, cancel := context.WithCancel(t.Context())
		s.OnLoad = func(context.Context) (io.ReadCloser, error) {
			cancel() // and the store does not look at its context
			return nil, harness.ErrPass
		}
		r := &harness.Recorder{}
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s})
		i.RunWithContext(ctx)
		s.OnLoad = nil
		stop := c.Run(i)
		time.Sleep(time.Minute)
		require.Empty(t, r.Events())
		harness.RequireAwaited(t, i, informer.ErrCheckpointSource)
		stop()
		require.Equal(t, before, s.Bytes(), "it is another's")
	})
}

// A checkpoint without a resource version is recognized as well: the informer would list.
func TestCheckpointWithoutAVersionOfAnotherCluster(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
		var spoil atomic.Bool
		transform := func(obj interface{}) (interface{}, error) {
			if spoil.Load() {
				return nil, errors.New("spoilt")
			}
			return obj, nil
		}
		stop := c.Run(harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, Transform: transform}))
		time.Sleep(time.Minute)
		spoil.Store(true)
		c.UpdatePod("a/0001", "changed")
		synctest.Wait()
		stop()
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume)
		r.Forget()

		// In the same cluster, it is listed.
		spoil.Store(false)
		c.ResetRequests()
		stop = c.Run(harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s.Killed()}))
		time.Sleep(time.Minute)
		stop()
		require.Equal(t, []string{"list limit=1", "list limit=500"}, c.Lists(), "one is for one object")
		require.Equal(t, []string{"sync a/0000", "update a/0001", "sync a/0002"}, r.Events())
		r.Forget()

		c.replace()
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s})
		c.Run(i)
		time.Sleep(time.Minute)
		harness.RequireAwaited(t, i, informer.ErrCheckpointSource)
		require.Empty(t, r.Events())
	})
}

// What replaces the checkpoint of another cluster, which was recognized by its objects, does not name
// that cluster.
func TestBeginAnewForgetsTheClusterOfTheCheckpoint(t *testing.T) {
	inTwoClusters(t, false, func(t *testing.T, c *twoClusters) {
		s := c.Lived(&harness.Recorder{})
		c.replace()
		c.forbidden = true
		r := &harness.Recorder{}
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, BeginAnew: true})
		stop := c.Run(i)
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		stop()
		require.NotContains(t, harness.ReadSaved(t, s.Bytes()).Metadata, "cluster")

		c.forbidden = false
		i = harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s})
		c.Run(i)
		time.Sleep(time.Minute)
		require.NoError(t, i.Status().LastError)
		require.True(t, i.HasSynced())
	})
}

// Objects that are newer than the checkpoint may have been created again in the same cluster: a
// list tells.
func TestCheckpointWhoseObjectsAreAllReplacedIsListed(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		r := &harness.Recorder{}
		s := c.Lived(r)
		c.DeletePods(harness.Keys(3)...)
		c.CreatePods(harness.Keys(3)...)
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s})
		c.Run(i)
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		require.Len(t, c.Lists(), 2, "one is for the metadata, to look for known objects")
		for i, event := range replacedEvents() {
			require.Equal(t, event, strings.TrimSuffix(r.Events()[i], " initial"))
		}
		c.RequireState(r)
		c.RequireSaved(s)
	})
}

func TestCheckpointWhoseOldestObjectIsGoneIsResumed(t *testing.T) {
	inTwoClusters(t, true, func(t *testing.T, c *twoClusters) {
		r := &harness.Recorder{}
		s := c.Lived(r)
		c.DeletePods("a/0000")
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s})
		c.Run(i)
		time.Sleep(time.Minute)
		require.True(t, i.HasSynced())
		require.Empty(t, c.Lists())
		require.Equal(t, []string{"delete a/0000"}, r.Events())
	})
}

func TestClusterReplacedUnderARunningInformer(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeWatchList} {
			t.Run(fmt.Sprintf("%v, forbidden %v", mode, forbidden), func(t *testing.T) {
				inTwoClusters(t, forbidden, func(t *testing.T, c *twoClusters) {
					var f harness.Failures
					r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
					i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle, ListMode: mode})
					stop := c.Run(i)
					time.Sleep(time.Minute)
					require.True(t, i.HasSynced())
					r.Forget()
					c.replace()
					time.Sleep(5 * time.Minute)
					c.second.RequireState(r)
					require.Subset(t, r.Events(), []string{"delete a/0000 unknown", "add a/0000"})
					errs := f.Errors()
					named := false
					for _, err := range errs {
						if is := strings.Contains(err.Error(), "another cluster than before"); is {
							require.ErrorIs(t, err, informer.ErrClusterReplaced)
							named = true
						}
					}
					require.Equal(t, !forbidden, named, "it was told %v", errs)
					require.NoError(t, i.Status().LastError)

					// The checkpoint is of the second cluster from now on.
					c.second.UpdatePod("a/0001", "changed")
					synctest.Wait()
					stop()
					r.Forget()
					c.second.DeletePods("a/0002")
					c.second.ResetRequests()
					i = harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle, ListMode: mode})
					c.Run(i)
					time.Sleep(time.Minute)
					require.Equal(t, []string{"delete a/0002"}, r.Events())
					require.Empty(t, harness.Only[*informer.CheckpointSourceError](&f))
					require.Empty(t, c.second.Lists())
				})
			})
		}
	}
}

// A server that stops ends its watches in good order, before they are due. Another cluster may
// answer after it.
func TestClusterReplacedAfterAWatchThatEndedEarly(t *testing.T) {
	inTwoClusters(t, false, func(t *testing.T, c *twoClusters) {
		r := &harness.Recorder{}
		c.Run(harness.Follow(c.World, informer.InformerConfig{Handler: r}))
		time.Sleep(time.Minute)
		c.UpdatePod("a/0001", "changed") // the watch has got further
		time.Sleep(time.Minute)
		c.replaced.Store(true)
		close(c.stopped)
		time.Sleep(5 * time.Minute)
		c.second.RequireState(r)
	})
}

// A checkpoint that is saved between the two has no version of the one with the UID of the other.
func TestClusterReplacedAndNotYetListed(t *testing.T) {
	inTwoClusters(t, false, func(t *testing.T, c *twoClusters) {
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
		noLists := harness.Refusing(http.StatusServiceUnavailable, func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/pods") && !harness.IsWatch(r)
		})
		i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, CheckpointInterval: time.Second})
		stop := c.Run(i)
		time.Sleep(time.Minute)
		c.handler = noLists(c.handler)
		c.replace()
		time.Sleep(time.Minute)
		stop()
		require.Empty(t, harness.ReadSaved(t, s.Bytes()).Resume)
	})
}

func TestRunStartsThoughKubeSystemHangs(t *testing.T) {
	inTwoClusters(t, false, func(t *testing.T, c *twoClusters) {
		c.hanging.Store(true)
		var f harness.Failures
		r, s := &harness.Recorder{}, &harness.MemoryCheckpoint{}
		for range 2 {
			i := harness.Follow(c.World, informer.InformerConfig{Handler: r, Checkpoint: s, ErrorHandler: f.Handle})
			stop := c.Run(i)
			time.Sleep(30 * time.Second)
			require.True(t, i.HasSynced())
			c.UpdatePod("a/0001", c.ResourceVersion())
			synctest.Wait()
			c.RequireState(r)
			stop()
		}
		require.Len(t, c.Lists(), 1, "the second run resumes")
	})
}
