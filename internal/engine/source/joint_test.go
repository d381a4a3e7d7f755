package source

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer/internal/edge/fanout"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/budget"
)

// flood is a watch-list with so many bytes that a reader holds up the others which has not begun.
type flood struct{ events int }

func (f *flood) Next() (fanout.Event[SharedEvent], error) {
	if f.events++; f.events == 1 {
		return fanout.Event[SharedEvent]{}, nil // the server has answered
	} else if f.events > 10 {
		return fanout.Event[SharedEvent]{}, io.EOF
	}
	return fanout.Event[SharedEvent]{Bytes: 1 << 20}, nil
}

func (f *flood) Stop()  {}
func (f *flood) Close() {}

// A reader that comes to the answer to the joint request when the others have read on lists alone.
// That is no failure of the server, after which watch-lists would not be tried any more.
func TestReaderLapsesBeforeItHasSeenTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, gathered := NewShared(), make(chan *fanout.Tap[SharedEvent], 2)
		heres := []func(){shared.Expect(), shared.Expect()}
		for _, here := range heres {
			go func() {
				tap, _ := shared.Gather(context.Background(), "all", here, func() fanout.Watch[SharedEvent] { return &flood{} })
				gathered <- tap
			}()
		}
		fast, late := <-gathered, <-gathered
		for {
			if _, err := fast.Take(); err == fanout.ErrNothing {
				<-fast.Ready()
			} else if err != nil {
				break
			}
		}
		fast.Close()
		time.Sleep(time.Second)

		s := New(Options{Shared: shared, Expected: &object.Expected{}, Report: &report.Report{Handler: func(error) {}}})
		s.joint = &joint{tap: late}
		feed, err := s.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
		require.NoError(t, err)
		var c Change
		require.ErrorIs(t, feed.Next(t.Context(), &c), ErrUnread)
		feed.Close()
		shared.Wait()
	})
}

func TestJointWatchListThatFailsGivesItsTurnBack(t *testing.T) {
	refused, turns := errors.New("refused"), budget.New(1<<20)
	lw := &cache.ListWatch{WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, refused }}
	s := New(Options{ListerWatcher: lw, Memory: &Memory{}, Budget: turns, Expected: &object.Expected{}, Report: &report.Report{Handler: func(error) {}}})
	list := s.newJointList(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	_, err := list.Next()
	require.ErrorIs(t, err, refused)
	require.Positive(t, turns.InUse())
	list.Close()
	require.Zero(t, turns.InUse())
}
