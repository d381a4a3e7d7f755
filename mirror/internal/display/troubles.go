package display

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// troubles turns the state of all rows into news: what broke, and what is well again, each told
// once. A cluster that goes away breaks all its resources at once; they share a line.
type troubles struct {
	told map[Place]sets.Set[string] // the reasons told since the place broke
}

// News returns what has changed since the last call.
func (t *troubles) News(rows []Row) []string {
	if t.told == nil {
		t.told = make(map[Place]sets.Set[string])
	}
	var news groups
	here := sets.New[Place]()
	for _, r := range rows {
		here.Insert(r.Place)
		told, broken := t.told[r.Place]
		switch {
		case r.Problem == "" && broken:
			delete(t.told, r.Place)
			news.add(r.Place, "well again")
		case r.Problem != "" && !told.Has(r.Problem):
			if !broken {
				t.told[r.Place] = sets.New[string]()
			}
			t.told[r.Place].Insert(r.Problem)
			news.add(r.Place, r.trouble())
		}
	}
	// A discovery has no row once it is done, nor has a cluster that was removed.
	for at := range t.told {
		if !here.Has(at) {
			delete(t.told, at)
			news.add(at, "that is over")
		}
	}
	return news.lines()
}

// lasting returns a line for each trouble of now.
func lasting(rows []Row) []string {
	var news groups
	for _, r := range rows {
		if r.Problem != "" {
			news.add(r.Place, r.trouble())
		}
	}
	return news.lines()
}

// Unsynced returns lines that name the rows whose first sync is not complete, and why.
func Unsynced(rows []Row) []string {
	var news groups
	for _, r := range rows {
		if !r.Synced {
			news.add(r.Place, strings.TrimSuffix("not synced: "+r.Problem, ": "))
		}
	}
	return news.lines()
}

// groups collects places of a cluster that have the same to tell.
type groups []group

type group struct {
	cluster, text string
	resources     []string
}

func (g *groups) add(at Place, text string) {
	i := slices.IndexFunc(*g, func(o group) bool { return o.cluster == at.Cluster && o.text == text })
	if i < 0 {
		i = len(*g)
		*g = append(*g, group{cluster: at.Cluster, text: text})
	}
	if name := at.Name(); name != "" {
		(*g)[i].resources = append((*g)[i].resources, name)
	}
}

func (g groups) lines() (lines []string) {
	const named = 4
	for _, o := range g {
		names := strings.Join(o.resources, ", ")
		if more := len(o.resources) - named; more > 1 {
			names = fmt.Sprintf("%s and %d more", strings.Join(o.resources[:named], ", "), more)
		}
		lines = append(lines, strings.TrimSuffix(o.cluster+" "+names, " ")+": "+o.text)
	}
	return lines
}
