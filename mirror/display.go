package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

const (
	redrawEvery = 500 * time.Millisecond // the live block of a terminal
	lineEvery   = time.Second            // a line of progress elsewhere, if there is any
	eventsEvery = 10 * time.Second       // a line of events elsewhere, if there were any
	remindEvery = time.Minute            // a line elsewhere that says what the first sync waits for, while nothing comes
	stateEvery  = 10 * time.Second       // the lines of the clusters that are in another state than before, elsewhere

	maxStates = 20 // lines of clusters at once
)

// display shows how far the mirror is: the resources that still sync, then the events that come in.
// It also tells the troubles, and that they are over.
type display struct {
	screen *screen
	rows   func() []row

	troubles  troubles
	began     time.Time
	last      map[place]row // at the step before
	lastStep  time.Time
	announced map[place]bool // told to be synced
	progress  time.Time      // when the last line of progress, or of the resources it waits for, was due

	// Where the screen is not live, the states of the clusters that were printed last, and when.
	states      map[string]string
	statesSince time.Time
	// Where the screen is not live, events are summed up from here to their next line. Zero while
	// anything still syncs.
	eventsSince time.Time
	events      counts
}

func newDisplay(to *screen, rows func() []row, now time.Time) *display {
	return &display{
		screen:    to,
		rows:      rows,
		began:     now,
		last:      make(map[place]row),
		lastStep:  now,
		announced: make(map[place]bool),
		progress:  now,
		states:    make(map[string]string),
	}
}

// Run shows until the context ends, and then the last state once more.
func (d *display) Run(ctx context.Context) {
	every := lineEvery
	if d.screen.Live() {
		every = redrawEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			d.Step(now)
		case <-ctx.Done():
			d.screen.Draw(nil)
			d.tell(d.rows())
			return
		}
	}
}

// Step shows what has changed since the last one.
func (d *display) Step(now time.Time) {
	rows := d.rows()
	d.tell(rows)

	settled := !slices.ContainsFunc(rows, func(r row) bool { return !r.settled() })
	elapsed := now.Sub(d.lastStep).Seconds()
	switch {
	case d.screen.Live() && settled:
		d.screen.Draw(d.eventBlock(rows, elapsed))
	case d.screen.Live():
		d.screen.Draw(d.progressBlock(rows, elapsed, now))
	case settled:
		d.printEvents(rows, now)
		d.printStates(rows, now)
	default:
		d.printProgress(rows, elapsed, now)
		d.printStates(rows, now)
	}
	d.lastStep = now
	for _, r := range rows {
		d.last[r.place] = r
	}
}

// tell prints what is said once: troubles, and resources that are synced.
func (d *display) tell(rows []row) {
	for _, line := range d.troubles.News(rows) {
		d.screen.Say(line)
	}
	for _, r := range rows {
		if !r.synced || d.announced[r.place] {
			continue
		}
		d.announced[r.place] = true
		if !d.screen.Live() { // there, the line in the block disappears, which says the same
			how := "synced"
			if r.resumed {
				how = "resumed"
			}
			d.screen.Print(fmt.Sprintf("%s: %s in %s: %s objects, %s", r.place, how, round(r.took), comma(int64(r.rows)), r.counts))
		}
	}
}

func (d *display) printProgress(rows []row, elapsed float64, now time.Time) {
	sum, done := total(rows), 0
	for _, r := range rows {
		if r.settled() {
			done++
		}
	}
	handled := sum.counts.handled - d.before(rows).handled
	switch {
	case handled > 0:
		d.screen.Print(fmt.Sprintf("syncing: %d of %d resources done, %s objects, %s/s, %s waiting to be written",
			done, len(rows), comma(sum.counts.handled), rate(handled, elapsed), bytesOf(sum.queued)))
		d.progress = now
	case now.Sub(d.progress) >= remindEvery:
		d.screen.Print(fmt.Sprintf("syncing: %d of %d resources done", done, len(rows)))
		for _, line := range lasting(rows) {
			d.screen.Say("still " + line)
		}
		d.progress = now
	}
	d.eventsSince = time.Time{} // the first sync is no event
}

func (d *display) printEvents(rows []row, now time.Time) {
	sum := total(rows)
	if d.eventsSince.IsZero() {
		d.eventsSince, d.events = now, sum.counts
	}
	if now.Sub(d.eventsSince) < eventsEvery {
		return
	}
	if delta := sum.counts.minus(d.events); delta.written() > 0 {
		d.screen.Print(eventLine(rows, sum, delta, now.Sub(d.eventsSince).Seconds()))
	}
	d.eventsSince, d.events = now, sum.counts
}

// printStates prints the clusters that are in another state than when they were last printed.
func (d *display) printStates(rows []row, now time.Time) {
	if now.Sub(d.statesSince) < stateEvery {
		return
	}
	changed := slices.DeleteFunc(clusterStates(rows), func(s clusterState) bool { return d.states[s.name] == s.what() })
	if len(changed) == 0 {
		return
	}
	for _, s := range changed {
		d.states[s.name] = s.what()
	}
	for _, line := range clusterLines(changed, maxStates) {
		d.screen.Print(line)
	}
	d.statesSince = now
}

// progressBlock lists how the clusters are, and then what still syncs, the busiest first, as far as
// there is room.
func (d *display) progressBlock(rows []row, elapsed float64, now time.Time) []string {
	open := slices.DeleteFunc(slices.Clone(rows), row.settled)
	speed := func(r row) int64 { return r.counts.minus(d.last[r.place].counts).handled }
	slices.SortStableFunc(open, func(a, b row) int { return cmp.Compare(speed(b), speed(a)) })

	sum := total(rows)
	block := []string{fmt.Sprintf("syncing: %d of %d resources done, %s objects, %s/s, %s waiting to be written, %s",
		len(rows)-len(open), len(rows), comma(sum.counts.handled), rate(sum.counts.minus(d.before(rows)).handled, elapsed),
		bytesOf(sum.queued), now.Sub(d.began).Round(time.Second))}
	block = append(block, d.clusterBlock(rows)...)

	var table strings.Builder
	columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "  CLUSTER\tRESOURCE\t   OBJECTS\tPER SECOND\t   WAITING\tSTATE")
	room := max(d.screen.Height()-len(block)-2, 0)
	for i, r := range open {
		if i == room {
			break
		}
		fmt.Fprintf(columns, "  %s\t%s\t%10s\t%10s\t%10s\t%s\n", r.place.cluster, r.place.resourceName(),
			comma(r.counts.handled), rate(speed(r), elapsed), bytesOf(r.queued), strings.TrimSuffix(r.phase+": "+r.trouble(), ": "))
	}
	columns.Flush()
	block = append(block, strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")...)
	if more := len(open) - room; more > 0 {
		block = append(block, fmt.Sprintf("  and %d more", more))
	}
	return block
}

// eventBlock is the live line, and a line for each trouble that lasts.
func (d *display) eventBlock(rows []row, elapsed float64) []string {
	sum := total(rows)
	block := []string{eventLine(rows, sum, sum.counts.minus(d.before(rows)), elapsed)}
	block = append(block, d.clusterBlock(rows)...)
	for _, line := range lasting(rows) {
		block = append(block, "  "+line)
	}
	return block[:min(len(block), d.screen.Height())]
}

// clusterBlock has a line for each cluster, in a third of the screen at most.
func (d *display) clusterBlock(rows []row) []string {
	block := clusterLines(clusterStates(rows), min(maxStates, max(d.screen.Height()/3, 1)))
	for i, line := range block {
		block[i] = "  " + line
	}
	return block
}

func eventLine(rows []row, sum row, delta counts, elapsed float64) string {
	return fmt.Sprintf("%s objects of %d resources; per second +%s ~%s -%s; in all %s; %s waiting to be written",
		comma(int64(sum.rows)), len(rows), rate(delta.added, elapsed), rate(delta.updated, elapsed), rate(delta.deleted, elapsed),
		sum.counts, bytesOf(sum.queued))
}

// before is the sum of the counts of these rows at the step before.
func (d *display) before(rows []row) (sum counts) {
	for _, r := range rows {
		sum = sum.plus(d.last[r.place].counts)
	}
	return sum
}

func (c counts) String() string {
	return fmt.Sprintf("%s added, %s updated, %s deleted, %s unchanged",
		comma(c.added), comma(c.updated), comma(c.deleted), comma(c.unchanged))
}

func comma(n int64) string { return humanize.Comma(n) }

func bytesOf(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

func rate(n int64, seconds float64) string {
	if seconds <= 0 {
		return "0"
	}
	return comma(int64(float64(n)/seconds + 0.5))
}

// round leaves as many digits of a duration as one wants to read.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}
