package share

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/mirror/internal/display"
	"k8s.io/apimachinery/pkg/util/wait"
)

// newsEvery is how often a replica is asked for news.
const newsEvery = time.Second

// Tell prints what changes of the units that a replica owns, until the context ends.
func Tell(ctx context.Context, status func() shards.Status, print func(line string)) {
	var told [3]string
	wait.UntilWithContext(ctx, func(context.Context) {
		for i, line := range news(status()) {
			if line != "" && line != told[i] {
				print(line)
			}
			told[i] = line
		}
	}, newsEvery)
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
		lines[1] = "without a living owner: " + display.Shortened(uncovered)
	}
	return lines
}

// owned says which units a replica owns.
func owned(s shards.Status) string {
	var units []string
	for _, u := range s.Owned() {
		units = append(units, fmt.Sprintf("%s (epoch %d)", u.Unit, u.Epoch))
	}
	text := fmt.Sprintf("owns %d of %s: %s", len(units), english.Plural(len(s.Units), "unit", ""), display.Shortened(units))
	return strings.TrimSuffix(text, ": ")
}
