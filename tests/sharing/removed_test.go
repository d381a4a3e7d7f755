package sharing_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/tests/harness"
)

// A handler that was removed is not waited for, although its last call has not returned.
func TestHandlerThatIsRemovedWhileItHangsIsNotWaitedFor(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods(harness.Keys(3)...)
		written := w.ResourceVersion()
		s := harness.Share(w, informer.InformerConfig{})
		returns := make(chan struct{})
		hangs := harness.AddHandler(t, s, &harness.Recorder{Before: func(string) { <-returns }})
		harness.AddHandler(t, s, &harness.Recorder{})
		defer harness.Start(s.RunWithContext)()
		defer close(returns)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		var waiting sync.WaitGroup
		waiting.Go(func() { require.NoError(t, s.WaitUntil(ctx, written)) })
		waiting.Go(func() { require.ErrorIs(t, hangs.WaitUntil(ctx, written), informer.ErrStopped) })
		synctest.Wait()
		require.False(t, s.HasSynced())

		began := time.Now()
		s.RemoveHandler(hangs)
		waiting.Wait()
		synctest.Wait()
		require.True(t, s.HasSynced())
		require.Zero(t, time.Since(began))
	})
}

// A handler that is removed in the middle of an audit or a redelivery of all does not end it for the
// others.
func TestHandlerThatIsRemovedMeanwhileEndsNothingForTheOthers(t *testing.T) {
	for name, c := range map[string]struct {
		do func(ctx context.Context, s *informer.SharedResourceVersionInformer) error
		// want is what the last handler gets.
		want []string
	}{
		"redelivery": {
			do: func(ctx context.Context, s *informer.SharedResourceVersionInformer) error {
				return s.Redeliver(ctx, informer.RedeliverOptions{})
			},
			want: []string{"update a/0000", "update a/0001", "update a/0002"},
		},
		"audit": {
			do: func(ctx context.Context, s *informer.SharedResourceVersionInformer) error {
				report, err := s.Audit(ctx, informer.AuditOptions{})
				if err == nil {
					require.Zero(t, report.MissingCount+report.StaleCount+report.SuperfluousCount)
				}
				return err
			},
		},
	} {
		harness.BubbleRun(t, name, informertest.Options{}, func(t *testing.T, w *harness.World) {
			w.CreatePods(harness.Keys(3)...)
			s := harness.Share(w, informer.InformerConfig{})
			returns, hanging := make(chan struct{}), make(chan struct{}, 1)
			first := harness.AddHandler(t, s, &harness.Recorder{Before: func(call string) {
				if call == "update a/0000" {
					hanging <- struct{}{}
					<-returns
				}
			}})
			last := &harness.Recorder{}
			harness.AddHandler(t, s, last)
			defer harness.Start(s.RunWithContext)()
			defer close(returns)
			synctest.Wait()
			if name == "audit" {
				w.UpdatePod("a/0000", "changed") // an audit waits for what looks wrong
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- c.do(ctx, s) }()
			<-hanging
			synctest.Wait()
			last.Forget()
			s.RemoveHandler(first)
			require.NoError(t, <-ended)
			require.Equal(t, c.want, last.Events())
		})
	}
}

// Bytes are counted although the handler has gone for which their watch was opened.
func TestBytesOfAWatchCountAfterItsHandlerHasGone(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		s := harness.Share(w, informer.InformerConfig{})
		handlers := []*informer.HandlerRegistration{harness.AddHandler(t, s, &harness.Recorder{}), harness.AddHandler(t, s, &harness.Recorder{})}
		defer harness.Settle(s.RunWithContext)()
		w.CreatePods("a/0000")
		synctest.Wait()
		for _, h := range handlers {
			if h.Status().Counts.ReceivedBytes > 0 {
				<-s.RemoveHandler(h)
			}
		}
		require.Len(t, s.Handlers(), 1)
		before := s.Status().Counts.ReceivedBytes
		require.Positive(t, before)
		w.CreatePods("a/0001")
		synctest.Wait()
		require.Greater(t, s.Status().Counts.ReceivedBytes, before)
	})
}
