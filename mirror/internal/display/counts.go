package display

import (
	"fmt"

	"github.com/rvinformer/informer"
)

// Counts are the events whose state the database has.
type Counts struct {
	Added, Updated, Deleted, Unchanged int64
}

// Add counts an event.
func (c *Counts) Add(e informer.Event) {
	switch e.Type {
	case informer.Added:
		c.Added++
	case informer.Updated:
		c.Updated++
	case informer.Deleted:
		c.Deleted++
	case informer.Synced:
		c.Unchanged++
	}
}

func (c Counts) plus(d Counts) Counts {
	return Counts{c.Added + d.Added, c.Updated + d.Updated, c.Deleted + d.Deleted, c.Unchanged + d.Unchanged}
}

func (c Counts) minus(d Counts) Counts {
	return Counts{c.Added - d.Added, c.Updated - d.Updated, c.Deleted - d.Deleted, c.Unchanged - d.Unchanged}
}

// written is the number of changes that reached the database.
func (c Counts) written() int64 { return c.Added + c.Updated + c.Deleted }

// Handled is the number of all events: the sign of progress.
func (c Counts) Handled() int64 { return c.written() + c.Unchanged }

func (c Counts) String() string {
	return fmt.Sprintf("%s added, %s updated, %s deleted, %s unchanged", Comma(c.Added), Comma(c.Updated), Comma(c.Deleted), Comma(c.Unchanged))
}
