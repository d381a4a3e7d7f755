package follow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/mirror/internal/display"
)

// triedAgain is what is true of everything that fails.
const triedAgain = "tried again within a minute"

// progress is how far something was when it made some.
type progress struct {
	handled int64
	at      time.Time
}

// Rows are how the clusters and their resources are, sorted by cluster and name. A cluster has a row
// while its discovery has something to tell. After the end of Run they are as before it.
func (m *Mirror) Rows() []display.Row {
	if last := m.last.Load(); last != nil {
		return *last
	}
	rows := m.discoveryRows() // before the others: without one, all informers of the cluster are there
	rows = append(rows, m.resourceRows()...)
	slices.SortFunc(rows, func(a, b display.Row) int {
		return cmp.Or(strings.Compare(a.Place.Cluster, b.Place.Cluster), strings.Compare(a.Place.Name(), b.Place.Name()))
	})
	return rows
}

// ClusterRows are the states of the clusters with something followed here, sorted by name.
func (m *Mirror) ClusterRows() (rows []display.Row) {
	sums := map[string]display.Row{}
	for _, r := range m.resourceRows() {
		sums[r.Place.Cluster] = sums[r.Place.Cluster].Plus(r)
	}
	for _, c := range m.Clusters() {
		if c.Units > 0 {
			r := m.clusterRow(c).Plus(sums[c.Name])
			r.Synced = c.Synced
			rows = append(rows, r)
		}
	}
	return rows
}

// clusterRow is how the discovery of a cluster is.
func (m *Mirror) clusterRow(c fleet.Cluster) display.Row {
	r := display.Row{Place: display.Place{Cluster: c.Name}, Took: time.Since(m.began)}
	r.Unknown = c.State != fleet.ClusterKnown && c.State != fleet.ClusterPartlyKnown
	if err := cmp.Or(c.LastError, errors.Join(c.Missing...)); err != nil {
		r.Problem, r.Retry = display.Reason(err), triedAgain
	}
	return r
}

// discoveryRows are those of the clusters whose discovery has something to tell.
func (m *Mirror) discoveryRows() (rows []display.Row) {
	clusters := m.Clusters()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range clusters {
		r := m.clusterRow(c)
		if r.Problem == "" && c.State == fleet.ClusterKnown && (m.followed[c.Name] || c.Synced) {
			continue
		}
		if r.Problem != "" {
			r.Failed = c.LastError == nil // what is missing will hardly come
			if spent := m.spentLocked(r.Place, c.LastError, c.Since, int64(c.SyncedInformers)); spent != nil {
				r.Problem, r.Failed = spent.Error(), true
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// resourceRows are how the resources are, in no order.
func (m *Mirror) resourceRows() (rows []display.Row) {
	running := m.members.Informers()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range running {
		f := m.feeds[targetOf(i.Member.(*factory.Member).Key())]
		if f != nil && !i.Foreign { // which has ended
			rows = append(rows, m.rowLocked(f, i.Status()))
		}
	}
	return rows
}

// rowLocked is the row of a feed.
func (m *Mirror) rowLocked(f *feed, status informer.Status) display.Row {
	r := display.Row{
		Place:   placeOf(f.target),
		Objects: status.Objects, Queued: status.QueuedBytes, Counts: f.Counts(),
		Took: time.Since(f.began), Synced: status.Synced, Resumed: status.ResumedFrom != "",
	}
	if r.Synced {
		r.Took = status.Counts.TimeToSync
	} else if spent := m.spentLocked(r.Place, status.LastError, status.FailingSince, r.Counts.Handled()); spent != nil {
		r.Failed, r.Problem = true, spent.Error()
		return r
	}
	switch {
	case status.DeadLetters > 0:
		r.Problem, r.Synced, r.Failed = english.Plural(status.DeadLetters, "row", "")+" refused by the database", false, true
	case isOwn(status.LastError):
		r.Problem, r.Retry = display.Reason(status.LastError), triedAgain
	}
	return r
}

// isOwn tells a problem of an informer from the end of the run, which is none, and from what the
// database does not take: the outage and the feed tell that.
func isOwn(err error) bool {
	batch, store := (*informer.BatchError)(nil), (*informer.StoreError)(nil)
	unsaved := errors.As(err, &store) && store.Op == "CheckpointStore.Save"
	return err != nil && !unsaved && !errors.Is(err, context.Canceled) && !errors.As(err, &batch)
}

// spentLocked returns why there is no sense in waiting for a place any longer, or nil.
func (m *Mirror) spentLocked(of display.Place, err error, failing time.Time, handled int64) error {
	now := time.Now()
	was, is := m.progress[of]
	if !is || handled > was.handled {
		was = progress{handled, now}
		m.progress[of] = was
	}
	return m.config.Patience.Spent(err, failing, was.at, now)
}
