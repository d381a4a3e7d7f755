package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/registry"
)

// emit takes a value of a series, or a histogram. By is the value of the further label.
type emit func(by string, value float64, histogram *informer.Histogram)

// family is the series of one name.
type family struct {
	name, help string
	kind       kind
	// by is the name of a further label, if there is one.
	by   string
	read func(r *reading, to emit)
	desc *prometheus.Desc
}

// value emits what read returns.
func value(read func(r *reading) float64) func(*reading, emit) {
	return known(func(r *reading) (float64, bool) { return read(r), true })
}

// known emits what read returns, unless that is not known.
func known(read func(r *reading) (value float64, known bool)) func(*reading, emit) {
	return func(r *reading, to emit) {
		if v, ok := read(r); ok && !r.foreign {
			to("", v, nil)
		}
	}
}

// audited emits what read returns of the last audit.
func audited(read func(r *reading, a *informer.AuditResult) float64) func(*reading, emit) {
	return known(func(r *reading) (float64, bool) {
		if r.status.LastAudit == nil {
			return 0, false
		}
		return read(r, r.status.LastAudit), true
	})
}

// number is a value that counts.
func number(read func(s *informer.Status) int64) func(*reading, emit) {
	return value(func(r *reading) float64 { return float64(read(&r.status)) })
}

// byKind emits those numbers that are not zero.
func byKind(read func(s *informer.Counts, to func(kind string, n int64))) func(*reading, emit) {
	return func(r *reading, to emit) {
		read(&r.status.Counts, func(kind string, n int64) {
			if n != 0 {
				to(kind, float64(n), nil)
			}
		})
	}
}

// sizes emits a histogram that has begun to count.
func sizes(read func(c *informer.Counts) *informer.Histogram) func(*reading, emit) {
	return func(r *reading, to emit) {
		if h := read(&r.status.Counts); h != nil {
			to("", 0, h)
		}
	}
}

const prefix = "rvinformer_"

// families are the metrics of informers, by name.
var families = described([]family{
	{name: "audit_age_seconds", help: "Seconds since the last audit. There is none before the first.",
		read: audited(func(r *reading, a *informer.AuditResult) float64 { return r.since(a.Time) })},
	{name: "audit_complete", help: "1 if the last audit came to its end, and 0 if it failed.",
		read: audited(func(_ *reading, a *informer.AuditResult) float64 {
			if a.Err != nil {
				return 0
			}
			return 1
		})},
	{name: "audit_differences", help: "Number of objects in which the last audit found the informer to differ from the server, by kind.", by: "kind",
		read: func(r *reading, to emit) {
			if a := r.status.LastAudit; a != nil {
				to("missing", float64(a.Missing), nil)
				to("stale", float64(a.Stale), nil)
				to("superfluous", float64(a.Superfluous), nil)
			}
		}},
	{name: "audit_duration_seconds", help: "Seconds that the last audit took.",
		read: audited(func(_ *reading, a *informer.AuditResult) float64 { return a.Took.Seconds() })},
	{name: "audit_interval_seconds", help: "Seconds between two audits, about: AuditEvery. There is none without it, or unless the informer runs.",
		read: known(func(r *reading) (float64, bool) {
			return r.status.AuditEvery.Seconds(), r.runs && r.status.AuditEvery > 0
		})},
	{name: "audit_repaired_objects", help: "Number of the differences of the last audit that are repaired.",
		read: audited(func(_ *reading, a *informer.AuditResult) float64 { return float64(a.Repaired) })},
	{name: "batch_size_events", help: "Number of events in each call of a BatchHandler.", kind: histogram,
		read: sizes(func(c *informer.Counts) *informer.Histogram { return c.BatchSize })},
	{name: "checkpoint_age_seconds", help: "Seconds since the checkpoint was saved. There is none before the first save, or unless the informer runs.",
		read: known(func(r *reading) (float64, bool) {
			return r.since(r.status.CheckpointTime), r.runs && !r.status.CheckpointTime.IsZero()
		})},
	{name: "checkpoint_duration_seconds", help: "Seconds that the newest save of the checkpoint took.",
		read: known(func(r *reading) (float64, bool) {
			return r.status.Counts.CheckpointDuration.Seconds(), r.status.Counts.CheckpointSaves > 0
		})},
	{name: "checkpoint_failing", help: "1 if the checkpoint is not in use or cannot be saved, and 0 if it can. There is none without a checkpoint.",
		read: known(func(r *reading) (float64, bool) {
			if r.status.CheckpointError != nil {
				return 1, r.status.Checkpoint != ""
			}
			return 0, r.status.Checkpoint != ""
		})},
	{name: "checkpoint_saves_total", help: "Number of times that the checkpoint was saved.", kind: counter,
		read: known(func(r *reading) (float64, bool) {
			return float64(r.status.Counts.CheckpointSaves), r.status.Checkpoint != ""
		})},
	{name: "condition", help: "Number of informers, one if no others have its labels, whose condition has the reason. Current is well.", by: "reason",
		read: func(r *reading, to emit) {
			for _, c := range r.reasons {
				to(string(c.reason), float64(c.informers), nil)
			}
		}},
	{name: "contact_age_seconds", help: "Seconds since the server last answered, bookmarks of a watch included. There is none unless the informer runs.",
		read: known(func(r *reading) (float64, bool) {
			return r.since(r.status.LastContact), r.runs && !r.status.LastContact.IsZero()
		})},
	{name: "current_age_seconds", help: "Seconds since the newest moment for which all that the server had then is known to be acknowledged. Bookmarks renew it each minute. There is none unless the informer runs.",
		read: known(func(r *reading) (float64, bool) {
			return r.since(r.status.CurrentAsOf), r.runs && !r.status.CurrentAsOf.IsZero()
		})},
	{name: "dead_letters", help: "Number of changes that the handler has refused too often, so that they are not handed over any more.",
		read: number(func(s *informer.Status) int64 { return int64(s.DeadLetters) })},
	{name: "handler_calls_total", help: "Number of calls of the handler: one for each batch, or else one for all that waited of an object.", kind: counter,
		read: number(func(s *informer.Status) int64 { return s.Counts.HandlerCalls })},
	{name: "handler_failures_total", help: "Number of calls of the handler that returned an error or panicked.", kind: counter,
		read: number(func(s *informer.Status) int64 { return s.Counts.HandlerFailures })},
	{name: "listed_objects_total", help: "Number of objects in the lists that were read.", kind: counter,
		read: number(func(s *informer.Status) int64 { return s.Counts.Listed })},
	{name: "lists_total", help: "Number of lists, or watch-lists, that were begun, by the reason.", kind: counter, by: "reason",
		read: byKind(func(c *informer.Counts, to func(string, int64)) {
			to("initial", c.Lists.Initial)
			to("expired", c.Lists.Expired)
			to("restored", c.Lists.Restored)
			to("lost", c.Lists.Lost)
			to("failed", c.Lists.Failed)
		})},
	{name: "objects", help: "Number of objects that are acknowledged, or in the store, and not deleted.",
		read: number(func(s *informer.Status) int64 { return int64(s.Objects) })},
	{name: "oldest_queued_change_age_seconds", help: "Seconds since the oldest change arrived that is not acknowledged, 0 if there is none.",
		read: value(func(r *reading) float64 {
			if !r.runs || r.status.OldestQueued.IsZero() {
				return 0
			}
			return r.since(r.status.OldestQueued)
		})},
	{name: "processing_latency_seconds", help: "Duration of calls of the handler: of all, or of one in 16 while there are more than 10,000 a second.", kind: histogram,
		read: sizes(func(c *informer.Counts) *informer.Histogram { return c.HandlerDuration })},
	{name: "queued_bytes", help: "Size of the objects that wait for the handler.",
		read: number(func(s *informer.Status) int64 { return s.QueuedBytes })},
	{name: "queued_items", help: "Number of objects with changes that are not acknowledged; in an object cache, of calls that wait.",
		read: number(func(s *informer.Status) int64 { return int64(s.Queued) })},
	{name: "received_bytes_total", help: "Number of bytes of lists and watches that came from the server, compressed if they came so; HTTP and TLS add to them.", kind: counter,
		read: number(func(s *informer.Status) int64 { return s.Counts.ReceivedBytes })},
	{name: "restores_total", help: "Number of times that the server was found to be another, or without a version that it had: restored, replaced or lagging.", kind: counter,
		read: number(func(s *informer.Status) int64 { return s.Counts.Restores })},
	{name: "running", help: "Number of informers, one if no others have its labels, that were started and not told to end.",
		read: func(r *reading, to emit) { to("", float64(r.running), nil) }},
	{name: "skipped_items_total", help: "Number of objects of lists and events of watches that could not be read.", kind: counter,
		read: number(func(s *informer.Status) int64 { return s.Skipped })},
	{name: "stale_events_total", help: "Number of events of watches that were not newer than what was known, and were dropped.", kind: counter,
		read: number(func(s *informer.Status) int64 { return s.Stale })},
	{name: "store_resource_version", help: "The 15 least significant digits of the resource version up to which everything is acknowledged.",
		read: known(func(r *reading) (float64, bool) { return r.version, r.version >= 0 })},
	{name: "stored_bytes", help: "Memory that the informer takes to remember: keys and versions, or the objects of a cache.",
		read: number(func(s *informer.Status) int64 { return s.Counts.StoredBytes })},
	{name: "synced", help: "1 if the first complete list was delivered, and 0 before that.",
		read: func(r *reading, to emit) {
			if r.status.Synced {
				to("", 1, nil)
			} else {
				to("", 0, nil)
			}
		}},
	{name: "time_to_sync_seconds", help: "Seconds from the first start until the informer was synced.",
		read: known(func(r *reading) (float64, bool) {
			return r.status.Counts.TimeToSync.Seconds(), r.status.Synced && r.status.Counts.TimeToSync > 0
		})},
	{name: "unaudited_seconds", help: "Seconds since an audit came to its end, or since the start before that. There is none without AuditEvery, or unless the informer runs.",
		read: known(func(r *reading) (float64, bool) {
			return r.since(r.status.LastAudited), r.runs && r.status.AuditEvery > 0
		})},
	{name: "unselected_objects_total", help: "Number of objects that the server sent although they do not match the selectors. They are not delivered.", kind: counter,
		read: number(func(s *informer.Status) int64 { return s.Counts.Unselected })},
	{name: "watch_events_total", help: "Number of events of watches, by type.", kind: counter, by: "type",
		read: byKind(func(c *informer.Counts, to func(string, int64)) {
			to("added", c.Events.Added)
			to("modified", c.Events.Modified)
			to("deleted", c.Events.Deleted)
			to("bookmark", c.Events.Bookmarks)
		})},
	{name: "watches_total", help: "Number of watches that were asked for, by the reason.", kind: counter, by: "reason",
		read: byKind(func(c *informer.Counts, to func(string, int64)) {
			to("listed", c.Watches.Listed)
			to("resumed", c.Watches.Resumed)
			to("ended", c.Watches.Ended)
			to("failed", c.Watches.Failed)
			to("quiet", c.Watches.Quiet)
		})},
})

func described(all []family) []family {
	for i := range all {
		f := &all[i]
		labels := []string{clusterLabel, groupLabel, versionLabel, resourceLabel, informerLabel}
		if f.by != "" {
			labels = append(labels, f.by)
		}
		f.desc = prometheus.NewDesc(prefix+f.name, f.help, labels, nil)
	}
	return all
}

// use is how full the budgets of one name are.
type use struct{ inUse, peak, limit int64 }

// budgets returns the sums of the budgets of one name.
func (c *Collector) budgets() map[string]use {
	all := map[string]use{}
	for _, b := range append(c.Budgets(), registry.Budget{Name: "default", Budget: informer.DefaultBudget()}) {
		name := valid(b.Name)
		u := all[name]
		u.inUse += b.InUse()
		u.peak += b.Peak()
		u.limit += b.Limit()
		all[name] = u
	}
	return all
}

// budgetFamilies are the metrics of budgets.
var budgetFamilies = []budgetFamily{
	budgetGauge("budget_in_use_bytes", "Bytes of the budget that are in use.", func(u use) int64 { return u.inUse }),
	budgetGauge("budget_limit_bytes", "Bytes of the budget that may be in use.", func(u use) int64 { return u.limit }),
	budgetGauge("budget_peak_bytes", "Greatest number of bytes of the budget that was in use.", func(u use) int64 { return u.peak }),
}

type budgetFamily struct {
	name, help string
	desc       *prometheus.Desc
	read       func(use) float64
}

func budgetGauge(name, help string, read func(use) int64) budgetFamily {
	return budgetFamily{name, help, prometheus.NewDesc(prefix+name, help, []string{"budget"}, nil), func(u use) float64 { return float64(read(u)) }}
}
