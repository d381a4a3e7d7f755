package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// troubles turns the state of all rows into news: what broke, and what is well again, each told
// once. A cluster that goes away breaks all its resources at once; they share a line.
type troubles struct {
	told map[place]sets.Set[string] // the reasons told since the place broke
}

// News returns what has changed since the last call.
func (t *troubles) News(rows []row) []string {
	if t.told == nil {
		t.told = make(map[place]sets.Set[string])
	}
	var news groups
	for _, r := range rows {
		told, broken := t.told[r.place]
		switch {
		case r.problem != "" && !told.Has(r.problem):
			if !broken {
				told = sets.New[string]()
				t.told[r.place] = told
			}
			told.Insert(r.problem)
			news.add(r.place, r.trouble())
		case r.problem == "" && broken:
			delete(t.told, r.place)
			news.add(r.place, "well again")
		}
	}
	// A cluster has no row once its discovery is done.
	for at := range t.told {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.place == at }) {
			delete(t.told, at)
			news.add(at, "discovered")
		}
	}
	return news.lines()
}

// lasting returns a line for each trouble of now.
func lasting(rows []row) []string {
	var news groups
	for _, r := range rows {
		if r.problem != "" {
			news.add(r.place, r.trouble())
		}
	}
	return news.lines()
}

// unsynced returns lines that name the rows whose first sync is not complete, and why.
func unsynced(rows []row) []string {
	var news groups
	for _, r := range rows {
		if !r.synced {
			news.add(r.place, strings.TrimSuffix("not synced: "+r.problem, ": "))
		}
	}
	return news.lines()
}

// groups collects places that have the same to tell.
type groups struct {
	order []group
}

type group struct {
	cluster, text string
	resources     []string
}

func (g *groups) add(at place, text string) {
	i := slices.IndexFunc(g.order, func(o group) bool { return o.cluster == at.cluster && o.text == text })
	if i < 0 {
		g.order = append(g.order, group{cluster: at.cluster, text: text})
		i = len(g.order) - 1
	}
	if name := at.resourceName(); name != "" {
		g.order[i].resources = append(g.order[i].resources, name)
	}
}

func (g *groups) lines() []string {
	const named = 4
	var lines []string
	for _, o := range g.order {
		where := o.cluster
		switch n := len(o.resources); {
		case n > named+1:
			where = fmt.Sprintf("%s %s and %d more", where, strings.Join(o.resources[:named], ", "), n-named)
		case n > 0:
			where = fmt.Sprintf("%s %s", where, strings.Join(o.resources, ", "))
		}
		lines = append(lines, where+": "+o.text)
	}
	return lines
}
