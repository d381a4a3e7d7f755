// Package display shows how far a mirror is: as a live block on a terminal, and as lines elsewhere. It
// also tells the news of a fleet, and sums up a run.
package display

import (
	"context"
	"fmt"
	"time"
)

const (
	redrawEvery = 500 * time.Millisecond // the live block of a terminal
	lineEvery   = time.Second            // a line of progress elsewhere, if there is any
	eventsEvery = 10 * time.Second       // a line of events elsewhere, if there were any
	remindEvery = time.Minute            // a line elsewhere that says what the first sync waits for, while nothing comes
)

// Display shows how far the mirror is: what still syncs, then the events that come in. It also tells
// the troubles, and that they are over. It has a row for each resource or, where there are many
// clusters, for each of these.
type Display struct {
	screen *Screen
	rows   func() []Row

	troubles  troubles
	announced map[Place]bool // told to be synced
	began     time.Time
	syncing   bool
	shown     Counts    // in the last line, or the last block
	shownAt   time.Time // when that was due
}

// New returns a display of rows, which are asked for again and again from now on.
func New(to *Screen, rows func() []Row, now time.Time) *Display {
	return &Display{screen: to, rows: rows, troubles: troubles{}, announced: map[Place]bool{}, began: now, syncing: true, shownAt: now}
}

// Run shows until the context ends, and then the last state once more.
func (d *Display) Run(ctx context.Context) {
	every := lineEvery
	if d.screen.Live() {
		every = redrawEvery
	}
	for {
		began := time.Now()
		d.Step(began)
		select {
		case <-time.After(max(every, 20*time.Since(began))): // many rows are looked at less often
		case <-ctx.Done():
			d.screen.Draw(nil)
			d.tell(d.rows())
			return
		}
	}
}

// Step shows what has changed since the last one.
func (d *Display) Step(now time.Time) {
	rows := d.rows()
	d.tell(rows)
	sum := Total(rows)
	was := d.syncing
	d.syncing = settled(rows) < len(rows)
	delta := sum.Counts.minus(d.shown)
	waited := now.Sub(d.shownAt)
	switch {
	case d.screen.Live():
		d.screen.Draw(d.block(rows, now))
	case was && !d.syncing: // the first sync is no event
	case d.syncing && delta.Handled() > 0, !d.syncing && waited >= eventsEvery && delta.written() > 0:
		d.screen.Print(d.line(rows, now))
	case d.syncing && waited >= remindEvery:
		d.screen.Print(d.line(rows, now))
		for _, line := range grouped(rows, Row.trouble) {
			d.screen.Say("still " + line)
		}
	case d.syncing, waited < eventsEvery:
		return
	}
	d.shown, d.shownAt = sum.Counts, now
}

// tell prints what is said once: troubles, and resources that are synced.
func (d *Display) tell(rows []Row) {
	for _, line := range d.troubles.News(rows) {
		d.screen.Say(line)
	}
	for _, r := range rows {
		if !r.Synced || d.announced[r.Place] {
			continue
		}
		d.announced[r.Place] = true
		if !d.screen.Live() { // the block says how many there are
			how := "synced"
			if r.Resumed {
				how = "resumed"
			}
			d.screen.Print(fmt.Sprintf("%s: %s in %s: %s objects, %s", r.Place, how, Round(r.Took), Comma(int64(r.Objects)), r.Counts))
		}
	}
}

// line says how far the first sync is or, after it, what has come in since the last line.
func (d *Display) line(rows []Row, now time.Time) string {
	sum, seconds := Total(rows), now.Sub(d.shownAt).Seconds()
	delta := sum.Counts.minus(d.shown)
	if d.syncing {
		return fmt.Sprintf("syncing: %d of %d done, %s objects, %s/s, %s waiting to be written, %s",
			settled(rows), len(rows), Comma(sum.Counts.Handled()), rate(delta.Handled(), seconds), bytesOf(sum.Queued), now.Sub(d.began).Round(time.Second))
	}
	return fmt.Sprintf("%s objects; per second +%s ~%s -%s; in all %s; %s waiting to be written", Comma(int64(sum.Objects)),
		rate(delta.Added, seconds), rate(delta.Updated, seconds), rate(delta.Deleted, seconds), sum.Counts, bytesOf(sum.Queued))
}

// block is the line, one for each trouble that lasts, and then one for each row that syncs.
func (d *Display) block(rows []Row, now time.Time) []string {
	block := []string{d.line(rows, now)}
	for _, line := range grouped(rows, Row.trouble) {
		block = append(block, "  "+line)
	}
	for _, r := range rows {
		if !r.Settled() && r.Problem == "" {
			block = append(block, fmt.Sprintf("  %s: %s objects, %s waiting to be written", r.Place, Comma(r.Counts.Handled()), bytesOf(r.Queued)))
		}
	}
	return block
}

// settled is how many of the rows have.
func settled(rows []Row) (n int) {
	for _, r := range rows {
		if r.Settled() {
			n++
		}
	}
	return n
}
