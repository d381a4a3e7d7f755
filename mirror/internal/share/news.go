package share

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/mirror/internal/display"
)

const (
	newsEvery = time.Second // is how often a replica is asked for news
	maxNamed  = 5           // is how many units a line names
)

// Tell prints what changes of the units that a replica owns, until the context ends.
func Tell(ctx context.Context, status func() shards.Status, print func(line string)) {
	var told [3]string
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	for {
		for i, line := range news(status()) {
			if line != "" && line != told[i] {
				print(line)
			}
			told[i] = line
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// news are what a replica owns, what nobody owns, and what is wrong; empty where there is nothing.
func news(s shards.Status) (lines [3]string) {
	var uncovered, problems []string
	for _, u := range s.Uncovered() {
		uncovered = append(uncovered, u.Unit.String())
	}
	for _, gap := range s.Gaps {
		uncovered = append(uncovered, gap.String())
	}
	for _, p := range s.Problems {
		problems = append(problems, fmt.Sprintf("%s: %s", p.Doing, display.Reason(p.Err)))
	}
	lines[0], lines[2] = owned(s), strings.Join(problems, "; ")
	if len(uncovered) > 0 {
		lines[1] = "without a living owner: " + shortened(uncovered)
	}
	return lines
}

// owned says which units a replica owns.
func owned(s shards.Status) string {
	var units []string
	for _, u := range s.Owned() {
		units = append(units, fmt.Sprintf("%s (epoch %d)", u.Unit, u.Epoch))
	}
	text := fmt.Sprintf("owns %d of %s: %s", len(units), english.Plural(len(s.Units), "unit", ""), shortened(units))
	return strings.TrimSuffix(text, ": ")
}

// shortened are as many of the texts as a line has room for.
func shortened(texts []string) string {
	if more := len(texts) - maxNamed; more > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(texts[:maxNamed], ", "), more)
	}
	return strings.Join(texts, ", ")
}
