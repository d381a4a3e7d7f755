package fleet_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/informertest"
)

func TestInformersOfFleetCanBeOperated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		east := serve(t, informertest.Options{})
		create(t, east, pods, "a", "b", "c")
		var refuses atomic.Bool
		refuses.Store(true)
		m := newMirror()
		f := newFleet(t, m, fleet.Config{
			Groups: []fleet.Group{{Resources: []string{"pods"}, Shards: 2}, {Name: "rest", Except: []string{"pods"}}},
			Configure: func(ctx context.Context, target fleet.Target) (informer.InformerConfig, error) {
				config, err := m.configure(ctx, target)
				take := config.BatchHandler
				config.MaxAttempts, config.ErrorHandler = 1, func(*informer.Reflector, error) {}
				config.BatchHandler = informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
					if refuses.Load() && slices.ContainsFunc(events, func(e informer.Event) bool { return e.Key == "default/b" }) {
						return errors.New("no")
					}
					return take.OnBatch(ctx, events)
				})
				return config, err
			},
		})
		require.Empty(t, f.Informers("east", pods))
		follow(t, f, "east", east)
		require.Empty(t, f.Informers("west", pods))
		require.Empty(t, f.Informers("east", schema.GroupVersionResource{Version: "v2", Resource: "pods"}))
		require.Len(t, f.Informers("east", deployments), 1)

		informers := f.Informers("east", schema.GroupVersionResource{Resource: "pods"})
		require.Len(t, informers, 2)
		refuses.Store(false)
		letters := 0
		for at, i := range informers {
			require.Equal(t, f.Units()[at], i.Target.Unit)
			require.Equal(t, pods, i.Target.Resource)
			var keys []string
			for _, letter := range i.DeadLetters() {
				keys = append(keys, letter.Key)
			}
			if letters += len(keys); len(keys) > 0 {
				require.NoError(t, i.Redeliver(t.Context(), informer.RedeliverOptions{Keys: keys}))
			}
			require.Empty(t, i.DeadLetters())
			report, err := i.Audit(t.Context(), informer.AuditOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Missing)
		}
		require.Equal(t, 1, letters)
		m.requireRight(t, "east", east, pods)
		written, err := east.Create(pods, object(pods, "default", "d"))
		require.NoError(t, err)
		for _, i := range informers {
			require.NoError(t, i.WaitUntil(t.Context(), written.GetResourceVersion()))
		}

		<-f.Remove("east")
		require.Empty(t, f.Informers("east", pods))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, i := range informers {
			require.ErrorIs(t, i.Redeliver(ctx, informer.RedeliverOptions{}), informer.ErrNotRunning)
			_, err := i.Audit(ctx, informer.AuditOptions{})
			require.ErrorIs(t, err, informer.ErrNotRunning)
			require.ErrorIs(t, i.WaitUntil(ctx, "1000000"), informer.ErrStopped)
			require.Equal(t, informer.PhaseStopped, i.Status().Phase)
		}
	})
}
