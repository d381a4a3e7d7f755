package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

// newsEvery is how often a fleet is asked for news.
const newsEvery = time.Second

// maxNamed is how many clusters or units a line names.
const maxNamed = 5

// news tells what has changed of a fleet: of its clusters, and of the units that this mirror owns.
type news struct {
	clusters func() []fleet.Cluster
	units    func() shards.Status // nil where the work is not shared
	screen   *screen
	told     map[string]string // the newest line, by what it is about
}

func newNews(of *fleet.Fleet, replica *shards.Replica, to *screen) *news {
	n := &news{clusters: of.Clusters, screen: to, told: map[string]string{}}
	if replica != nil {
		n.units = replica.Status
	}
	return n
}

// Run tells until the context ends.
func (n *news) Run(ctx context.Context) {
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	for {
		n.Step()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Step tells what is not as it was.
func (n *news) Step() {
	now := map[string]string{}
	for _, c := range n.clusters() {
		now[c.Name] = clusterNews(c)
	}
	for name := range n.told {
		if _, is := now[name]; !is && !strings.HasPrefix(name, "/") {
			n.tell(name, "removed")
			delete(n.told, name)
		}
	}
	for name, line := range now {
		n.tell(name, line)
	}
	if n.units == nil {
		return
	}
	s := n.units()
	n.tell("/units", ownedNews(s))
	n.tell("/uncovered", uncoveredNews(s))
	var problems []string
	for _, p := range s.Problems {
		problems = append(problems, fmt.Sprintf("%s: %s", p.Doing, reason(p.Err)))
	}
	n.tell("/problems", strings.Join(problems, "; "))
}

// tell prints a line about something, unless it is the same as before. No line of units has a name
// before it.
func (n *news) tell(about, line string) {
	if n.told[about] == line {
		return
	}
	n.told[about] = line
	switch {
	case line == "":
	case strings.HasPrefix(about, "/"):
		n.screen.Print(line)
	default:
		n.screen.Print(about + ": " + line)
	}
}

func clusterNews(c fleet.Cluster) string {
	text := c.State.String()
	switch {
	case c.State == fleet.ClusterIdle:
		return "not followed by this mirror"
	case c.Synced:
		text = fmt.Sprintf("%s synced", english.Plural(c.Informers, "resource", ""))
	case c.Informers > 0:
		text = fmt.Sprintf("%s, not all synced", english.Plural(c.Informers, "resource", ""))
	}
	var wrong []string
	if c.LastError != nil {
		wrong = append(wrong, reason(c.LastError))
	}
	for _, err := range c.Missing {
		wrong = append(wrong, reason(err))
	}
	return strings.Join(append([]string{text}, shortened(wrong)...), "; ")
}

func ownedNews(s shards.Status) string {
	var units []string
	for _, u := range s.Owned() {
		units = append(units, fmt.Sprintf("%s (epoch %d)", u.Unit, u.Epoch))
	}
	text := fmt.Sprintf("owns %d of %s", len(units), english.Plural(len(s.Units), "unit", ""))
	if len(units) == 0 {
		return text
	}
	return text + ": " + strings.Join(shortened(units), ", ")
}

func uncoveredNews(s shards.Status) string {
	var units []string
	for _, u := range s.Uncovered() {
		units = append(units, u.Unit.String())
	}
	for _, gap := range s.Gaps {
		units = append(units, gap.String())
	}
	if len(units) == 0 {
		return ""
	}
	return "without a living owner: " + strings.Join(shortened(units), ", ")
}

// shortened are as many of the texts as a line has room for.
func shortened(texts []string) []string {
	if len(texts) <= maxNamed {
		return texts
	}
	return append(texts[:maxNamed:maxNamed], fmt.Sprintf("and %d more", len(texts)-maxNamed))
}
