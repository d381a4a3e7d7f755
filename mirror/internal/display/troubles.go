package display

import (
	"slices"
	"strings"
)

// troubles turns the state of all rows into news: what broke, and what is well again, each told
// once. A cluster that goes away breaks all its resources at once; they share a line.
type troubles map[Place][]string // the reasons told since the place broke

// News returns what has changed since the last call.
func (t troubles) News(rows []Row) []string {
	here := make(map[Place]bool, len(rows))
	for _, r := range rows {
		here[r.Place] = true
	}
	rows = slices.Clip(rows)
	for at := range t {
		if !here[at] { // a discovery has no row once it is done, nor has a cluster that was removed
			rows = append(rows, Row{Place: at})
		}
	}
	return grouped(rows, func(r Row) string {
		told := t[r.Place]
		switch {
		case r.Problem != "" && !slices.Contains(told, r.Problem):
			t[r.Place] = append(told, r.Problem)
			return r.trouble()
		case r.Problem != "" || told == nil:
			return ""
		}
		delete(t, r.Place)
		if !here[r.Place] {
			return "that is over"
		}
		return "well again"
	})
}

// Unsynced returns lines that name the rows whose first sync is not complete, and why.
func Unsynced(rows []Row) []string {
	return grouped(rows, func(r Row) string {
		if r.Synced {
			return ""
		}
		return strings.TrimSuffix("not synced: "+r.Problem, ": ")
	})
}

// grouped returns lines with what there is to tell of each row. Resources of a cluster that have the
// same to tell share a line.
func grouped(rows []Row, tell func(Row) string) (lines []string) {
	type line struct{ cluster, text string }
	var order []line
	resources := map[line][]string{}
	for _, r := range rows {
		at := line{r.Place.Cluster, tell(r)}
		if at.text == "" {
			continue
		}
		if !slices.Contains(order, at) {
			order = append(order, at)
		}
		if name := r.Place.Name(); name != "" {
			resources[at] = append(resources[at], name)
		}
	}
	for _, l := range order {
		lines = append(lines, strings.TrimSuffix(l.cluster+" "+Shortened(resources[l]), " ")+": "+l.text)
	}
	return lines
}
