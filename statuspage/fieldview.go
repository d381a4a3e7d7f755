package statuspage

import (
	"fmt"
	"strings"
	"time"
)

// cell is the value of a field as the page shows it: as text, as a time, as fields of its own, or
// as several values.
type cell struct {
	Text string
	// Long tells that the text is of an error, or as long as one.
	Long   bool
	Ago    string
	Time   time.Time
	Fields []shownField
	List   []cell
}

// shownField is a field as the page shows it.
type shownField struct {
	Name string
	Cell cell
}

// show returns fields as the page shows them.
func show(now time.Time, f fields) (all []shownField) {
	for _, one := range f {
		all = append(all, shownField{words(one.Name), cellOf(now, one.Name, one.Value)})
	}
	return all
}

func cellOf(now time.Time, name string, value any) (c cell) {
	switch v := value.(type) {
	case nil:
		c.Text = "–"
	case time.Time:
		c.Time, c.Ago = v, ago(now, v)
	case fields:
		if c.Text = inLine(v); c.Text == "" {
			c.Fields = show(now, v)
		}
	case []any:
		for _, one := range v {
			c.List = append(c.List, cellOf(now, name, one))
		}
	case bool:
		c.Text = "no"
		if v {
			c.Text = "yes"
		}
	case histogram:
		c.Text = v.String()
	case int:
		c.Text = count(v)
	case int64:
		c.Text = count(v)
		if strings.HasSuffix(name, "Bytes") {
			c.Text = size(v)
		}
	default:
		c.Text = fmt.Sprint(v)
		c.Long = len(c.Text) > 60
	}
	return c
}

// inLine is a line with fields that are all whole numbers; empty for others.
func inLine(f fields) string {
	parts := make([]string, 0, len(f))
	for _, one := range f {
		n, ok := one.Value.(int64)
		if !ok {
			return ""
		}
		parts = append(parts, strings.ToLower(words(one.Name))+" "+count(n))
	}
	return strings.Join(parts, " · ")
}

// Facts are what the page of an informer shows of its Status.
func (d *details) Facts() []shownField {
	var f fields
	if d.Leases != nil {
		if !d.Started.IsZero() {
			f = append(f, field{"Started", d.Started})
		}
		f = append(f, field{"Leases", *d.Leases})
	}
	return show(d.Time, append(f, d.Status...))
}

// Root is the address of the first screen, seen from that of an informer.
func (d *details) Root() string { return strings.Repeat("../", 1+strings.Count(d.Path, "/")) }
