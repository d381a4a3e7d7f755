package statuspage

import "strings"

// stripe is a part of the bar that shows how many informers are in which state.
type stripe struct {
	Level       string
	From, Width string
}

// Bar is the bar of the first screen. A state that some informer is in can be seen, however few
// they are.
func (o *overview) Bar() (stripes []stripe) {
	t := o.Total
	const least = 1.5 // per cent
	parts, sum := [levels]float64{}, 0.0
	for l, n := range [levels]int{t.Wrong, t.Slow, t.Busy, t.Idle, t.Well} {
		if n > 0 {
			parts[l] = max(least, 100*float64(n)/float64(t.Informers))
			sum += parts[l]
		}
	}
	from := 0.0
	for l, part := range parts {
		if part > 0 {
			width := 100 * part / sum
			stripes = append(stripes, stripe{level(l).String(), decimal(from), decimal(width)})
			from += width
		}
	}
	return stripes
}

// column is a column of the rows.
type column struct {
	Text   string
	Number bool
	// Sort is the order that its link is for.
	Sort, Link  string
	Here        bool
	Arrow       string
	description string
}

// columns are those of the rows. Text is also how their orders are called in the form.
var columns = []column{
	{Text: "condition", Sort: ""},
	{Text: "informer", Sort: "resource"},
	{Text: "cluster", Sort: "cluster"},
	{Text: "for", Sort: "since", Number: true, description: "longest in its condition"},
	{Text: "objects", Sort: "objects", Number: true, description: "most objects"},
	{Text: "stored", Sort: "bytes", Number: true, description: "most bytes stored"},
	{Text: "waiting", Sort: "queued", Number: true, description: "most changes waiting"},
	{Text: "age", Sort: "age", Number: true, description: "oldest view"},
}

// Columns are the columns with links that sort by them.
func (o *overview) Columns() []column {
	linked := make([]column, len(columns))
	sort, reverse := strings.CutPrefix(o.Query.Sort, "-")
	for i, c := range columns {
		if c.Sort != "" {
			c.Link = o.Query.sortedBy(c.Sort)
		}
		if c.Sort != "" && c.Sort == sort {
			c.Here, c.Arrow = true, " ↓"
			if reverse {
				c.Arrow = " ↑"
			}
		}
		linked[i] = c
	}
	return linked
}

// order is an order that the form offers.
type order struct{ Name, Text string }

// Orders are those but for the one by default, and the reverse that is in use.
func (o *overview) Orders() (all []order) {
	for _, c := range columns {
		if c.Sort == "" {
			continue
		}
		text := c.description
		if text == "" {
			text = "by " + c.Text
		}
		all = append(all, order{c.Sort, text})
		if o.Query.Sort == "-"+c.Sort {
			all = append(all, order{o.Query.Sort, text + ", reversed"})
		}
	}
	return all
}

// Levels are the states that the form offers.
func (o *overview) Levels() []string { return levelNames[:] }

// groups is a table of clusters, or of resources.
type groups struct {
	Name, Title string
	Groups      []linkedGroup
	More        int
	All         string
}

type linkedGroup struct {
	group
	Link string
}

// GroupsOf is the table of "cluster" or "resource".
func (o *overview) GroupsOf(name string) groups {
	all := o.Query
	all.All = true
	g := groups{Name: name, Title: "Resources", More: o.MoreResources, All: all.String()}
	of := o.Resources
	if name == "cluster" {
		g.Title, g.More, of = "Clusters", o.MoreClusters, o.Clusters
	}
	for _, one := range of {
		g.Groups = append(g.Groups, linkedGroup{one, o.Query.of(name, one.Name)})
	}
	return g
}
