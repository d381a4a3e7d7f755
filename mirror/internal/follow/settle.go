package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/mirror/internal/display"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// settleTick is how often it is looked at how far the first sync is.
const settleTick = 100 * time.Millisecond

// ErrNothing says that no cluster has a resource to mirror. Why is in their rows.
var ErrNothing = errors.New("there is nothing to mirror")

// Settled waits until every resource of every cluster is synced, and its objects in the database, or
// there is no sense in waiting for it. With all resources, it also waits until the rows of those are
// gone that a cluster has ceased to serve.
func (m *Mirror) Settled(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, settleTick, true, func(ctx context.Context) (bool, error) {
		rows := m.Rows()
		if slices.ContainsFunc(rows, func(r display.Row) bool { return !r.Settled() }) {
			return false, nil
		}
		for _, c := range m.Clusters() {
			if left, err := m.left(ctx, c, rows); err != nil || left {
				return false, err
			}
		}
		return true, nil
	})
}

// Following waits until the context ends. It returns ErrNothing as soon as there is nothing to wait
// for.
func (m *Mirror) Following(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, settleTick, true, func(context.Context) (bool, error) {
		rows := m.Rows()
		if len(rows) == 0 || slices.ContainsFunc(rows, func(r display.Row) bool { return r.Place.Name() != "" || !r.Failed }) {
			return false, nil
		}
		return true, ErrNothing
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// left reports whether the database has rows of a resource that the cluster does not serve. The fleet
// removes them when two discoveries lack the resource.
func (m *Mirror) left(ctx context.Context, c fleet.Cluster, rows []display.Row) (bool, error) {
	if len(m.config.Resources) > 0 || c.State != fleet.ClusterKnown || len(c.Missing) > 0 {
		return false, nil
	}
	known, err := m.config.Database.Known(ctx, fleet.Unit{Cluster: c.Name})
	unserved := slices.DeleteFunc(known, func(r schema.GroupVersionResource) bool {
		return m.config.OmitSecrets && isSecrets(r) || slices.ContainsFunc(rows, func(of display.Row) bool {
			return of.Place == display.Place{Cluster: c.Name, Resource: r.GroupResource()}
		})
	})
	if err == nil && len(unserved) == 0 {
		return false, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := display.Place{Cluster: c.Name, Resource: schema.GroupResource{Resource: "*"}}
	if spent := m.spentLocked(at, err, time.Now(), -int64(len(unserved))); spent != nil {
		return false, fmt.Errorf("%s: rows of resources are left that it does not serve, %s for instance: %w", c.Name, unserved, spent)
	}
	return true, nil
}
