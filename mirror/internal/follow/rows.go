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
	running := m.informers()
	clusters := m.Clusters()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil {
		return m.last
	}
	var rows []display.Row
	for _, c := range clusters {
		if r, is := m.discoveryLocked(c); is {
			rows = append(rows, r)
		}
	}
	for t, i := range running {
		if f := m.feeds[t]; f != nil {
			rows = append(rows, m.rowLocked(f, i.Status()))
		}
	}
	slices.SortFunc(rows, func(a, b display.Row) int {
		return cmp.Or(strings.Compare(a.Place.Cluster, b.Place.Cluster), strings.Compare(a.Place.Name(), b.Place.Name()))
	})
	return rows
}

// ClusterRows are how the clusters are of which something is followed here, sorted by name.
func (m *Mirror) ClusterRows() []display.Row {
	running, clusters := m.informers(), m.Clusters()
	m.mu.Lock()
	defer m.mu.Unlock()
	sums := map[string]display.Row{}
	for t, i := range running {
		if f := m.feeds[t]; f != nil {
			sums[t.unit.Cluster] = display.Total([]display.Row{sums[t.unit.Cluster], m.rowLocked(f, i.Status())})
		}
	}
	var rows []display.Row
	for _, c := range clusters {
		if c.Units == 0 {
			continue
		}
		r := sums[c.Name]
		r.Place, r.Synced, r.Took = display.Place{Cluster: c.Name}, c.Synced, time.Since(m.began)
		if err := cmp.Or(c.LastError, errors.Join(c.Missing...)); err != nil {
			r.Problem, r.Retry = display.Reason(err), triedAgain
		}
		rows = append(rows, r)
	}
	return rows
}

// discoveryLocked is the row of a cluster, if it has one.
func (m *Mirror) discoveryLocked(c fleet.Cluster) (display.Row, bool) {
	r := display.Row{Place: display.Place{Cluster: c.Name}, Took: time.Since(m.began)}
	switch err := cmp.Or(c.LastError, errors.Join(c.Missing...)); {
	case err != nil:
		r.Problem, r.Retry = display.Reason(err), triedAgain
		if spent := m.spentLocked(r.Place, c.LastError, c.Since, int64(c.SyncedInformers)); spent != nil {
			r.Problem, r.Failed = spent.Error(), true
		}
		r.Failed = r.Failed || c.LastError == nil // what is missing will hardly come
	case c.State == fleet.ClusterKnown && (m.followed[c.Name] || c.Synced):
		return r, false
	}
	return r, true
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
	batch, saved := (*informer.BatchError)(nil), (*unsavedError)(nil)
	return err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &batch) && !errors.As(err, &saved)
}

// spentLocked returns why there is no sense in waiting for a place any longer, or nil.
func (m *Mirror) spentLocked(of display.Place, err error, failing time.Time, handled int64) error {
	if m.config.Patience == 0 {
		return nil
	}
	now := time.Now()
	was, is := m.progress[of]
	if !is || handled > was.handled {
		was = progress{handled, now}
		m.progress[of] = was
	}
	return m.config.Patience.Spent(err, failing, was.at, now)
}
