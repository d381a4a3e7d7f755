package metrics

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/internal/edge/report"
	"github.com/rvinformer/informer/registry"
)

// reading is how the informers with the same labels are at one moment.
type reading struct {
	Labels
	now    time.Time
	status informer.Status
	// version is the resource version as a number, and -1 if it is none.
	version float64
	// runs tells that an informer runs, and running is how many do. One that does not run has no
	// age.
	runs    bool
	running int
	// foreign tells that there are informers of client-go. Little is known of these.
	foreign bool
	// reasons counts the informers by the reason of their condition.
	reasons []counted
	// done is that of the first informer, and parts has each of them if there are several.
	done  <-chan struct{}
	parts map[<-chan struct{}]report.Totals
	// shared are the labels in the order of their names, which all series have in common.
	shared []*dto.LabelPair
}

// readings asks all informers how they are.
func readings(informers []registry.Informer, now time.Time) []*reading {
	places := make(map[Labels]int, len(informers))
	all := make([]*reading, 0, len(informers))
	for _, i := range informers {
		if m, ok := i.Member.(*factory.Member); ok && m.Informer() == nil {
			continue // it has ended
		}
		l, s := labelsOf(i), i.Status()
		next := &reading{Labels: l, done: i.Done(), now: now, status: s, version: versionOf(s.ResourceVersion), foreign: i.Foreign}
		if next.runs = runs(s.Condition); next.runs {
			next.running = 1
		}
		next.count(s.Condition.Reason)
		if at, exists := places[l]; exists {
			all[at].merge(next)
			continue
		}
		places[l] = len(all)
		all = append(all, next)
	}
	return all
}

// sorted sorts readings as a prometheus.Registry does, which is quick then.
func sorted(all []*reading) []*reading {
	slices.SortFunc(all, func(a, b *reading) int {
		return cmp.Or(
			strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Group, b.Group), strings.Compare(a.Informer, b.Informer),
			strings.Compare(a.Resource, b.Resource), strings.Compare(a.Version, b.Version),
		)
	})
	return all
}

// labelsOf returns the labels of an informer. Those of several namespaces or selectors of a factory
// have the same.
func labelsOf(i registry.Informer) Labels {
	l := i.Labels()
	if m, ok := i.Member.(*factory.Member); ok {
		k := m.Key()
		l = factory.Key{Resource: k.Resource, Cluster: k.Cluster, Variant: k.Variant, InformerType: k.InformerType}.Labels()
	}
	for _, text := range []*string{&l.Cluster, &l.Group, &l.Version, &l.Resource, &l.Informer} {
		*text = valid(*text)
	}
	return l
}

// valid replaces what a prometheus.Registry would refuse the whole scrape for.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// merge adds an informer with the same labels.
func (r *reading) merge(o *reading) {
	r.parts = r.each()
	r.parts[o.done] = totals(&o.status)
	a, b := &r.status, &o.status
	switch {
	case r.runs == o.runs:
		mergeAges(a, b)
	case o.runs:
		setAges(a, b)
	}
	r.runs, r.running = r.runs || o.runs, r.running+o.running
	a.Objects += b.Objects
	a.Queued += b.Queued
	a.QueuedBytes += b.QueuedBytes
	a.Skipped += b.Skipped
	a.Stale += b.Stale
	a.DeadLetters += b.DeadLetters
	a.LastAudit = together(a.LastAudit, b.LastAudit)
	a.Counts = a.Counts.Plus(b.Counts)
	r.version = min(r.version, o.version)
	r.foreign = r.foreign && o.foreign
	r.count(b.Condition.Reason)
}

// runs reports whether an informer with a condition was started, and was not told to end.
func runs(c informer.Condition) bool {
	switch c.Reason {
	case informer.ReasonStopped, informer.ReasonStopping:
		return false
	case informer.ReasonNotStarted:
		return !c.Since.IsZero()
	}
	return true
}

// mergeAges adds to a what is told of b while it runs.
func mergeAges(a, b *informer.Status) {
	a.Synced = a.Synced && b.Synced
	if b.CurrentAsOf.Before(a.CurrentAsOf) { // also if it is not known
		a.CurrentAsOf = b.CurrentAsOf
	}
	a.OldestQueued = report.Earliest(a.OldestQueued, b.OldestQueued)
	a.LastContact = report.Earliest(a.LastContact, b.LastContact)
	a.Checkpoint = cmp.Or(a.Checkpoint, b.Checkpoint)
	a.CheckpointTime = report.Earliest(a.CheckpointTime, b.CheckpointTime)
	a.CheckpointError = cmp.Or(a.CheckpointError, b.CheckpointError)
	if a.AuditEvery == 0 || b.AuditEvery != 0 && b.LastAudited.Before(a.LastAudited) {
		a.AuditEvery, a.LastAudited = b.AuditEvery, b.LastAudited
	}
}

// setAges has a take over from b what mergeAges adds.
func setAges(a, b *informer.Status) {
	a.Synced, a.CurrentAsOf, a.OldestQueued, a.LastContact = b.Synced, b.CurrentAsOf, b.OldestQueued, b.LastContact
	a.Checkpoint, a.CheckpointTime, a.CheckpointError = b.Checkpoint, b.CheckpointTime, b.CheckpointError
	a.AuditEvery, a.LastAudited = b.AuditEvery, b.LastAudited
}

// count counts an informer with a condition.
func (r *reading) count(reason informer.ConditionReason) {
	if reason == "" {
		return
	}
	reason = informer.ConditionReason(valid(string(reason))) // a Source may have one of its own
	for i := range r.reasons {
		if r.reasons[i].reason == reason {
			r.reasons[i].informers++
			return
		}
	}
	r.reasons = append(r.reasons, counted{reason, 1})
}

// counted is how many informers have a condition.
type counted struct {
	reason    informer.ConditionReason
	informers int
}

// together returns the audits of two informers as one, either of which may be nil.
func together(a, b *informer.AuditResult) *informer.AuditResult {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &informer.AuditResult{
		Time: report.Earliest(a.Time, b.Time), Took: max(a.Took, b.Took), Objects: a.Objects + b.Objects, Missing: a.Missing + b.Missing,
		Stale: a.Stale + b.Stale, Superfluous: a.Superfluous + b.Superfluous, Repaired: a.Repaired + b.Repaired, Err: errors.Join(a.Err, b.Err),
	}
}

// versionDigits are those of a resource version that a metric can show: a float64 is exact for so
// many.
const versionDigits = 15

// versionOf returns the last digits of a resource version as a number, as client-go does, or -1.
func versionOf(resourceVersion string) float64 {
	if strings.Trim(resourceVersion, "0123456789") != "" || resourceVersion == "" {
		return -1
	}
	n, err := strconv.ParseInt(resourceVersion[max(0, len(resourceVersion)-versionDigits):], 10, 64)
	if err != nil {
		return -1
	}
	return float64(n)
}

// since returns the seconds since a time.
func (r *reading) since(t time.Time) float64 { return max(0, r.now.Sub(t).Seconds()) }

// The names of the labels.
var (
	clusterLabel, groupLabel, informerLabel = "cluster", "group", "informer"
	resourceLabel, versionLabel             = "resource", "version"
)

// pairs returns the labels of a series. By and value are of a further label, unless by is empty.
func (r *reading) pairs(by, value string) []*dto.LabelPair {
	if r.shared == nil {
		r.shared = []*dto.LabelPair{
			{Name: &clusterLabel, Value: &r.Cluster}, {Name: &groupLabel, Value: &r.Group}, {Name: &informerLabel, Value: &r.Informer},
			{Name: &resourceLabel, Value: &r.Resource}, {Name: &versionLabel, Value: &r.Version},
		}
	}
	if by == "" {
		return r.shared
	}
	at, _ := slices.BinarySearchFunc(r.shared, by, func(p *dto.LabelPair, name string) int { return strings.Compare(*p.Name, name) })
	return slices.Concat(r.shared[:at], []*dto.LabelPair{{Name: &by, Value: &value}}, r.shared[at:])
}
