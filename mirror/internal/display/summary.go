package display

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteSummary prints the table that ends a --once run, and reports whether everything is synced.
func WriteSummary(to io.Writer, rows []Row, took time.Duration) (synced bool, err error) {
	columns := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "CLUSTER\tRESOURCE\t  OBJECTS\t    ADDED\t  UPDATED\t  DELETED\tUNCHANGED\t   TIME\tRESULT")
	failed := 0
	for _, r := range rows {
		result := "synced"
		if !r.Synced {
			failed++
			result = "FAILED: " + r.Problem
			if r.Problem == "" {
				result = "FAILED: interrupted"
			}
		}
		name := r.Place.Name()
		if name == "" {
			name = "(discovery)"
		}
		fmt.Fprintf(columns, "%s\t%s\t%9s\t%9s\t%9s\t%9s\t%9s\t%7s\t%s\n", r.Place.Cluster, name, Comma(int64(r.Objects)),
			Comma(r.Counts.Added), Comma(r.Counts.Updated), Comma(r.Counts.Deleted), Comma(r.Counts.Unchanged), Round(r.Took), result)
	}
	sum := Total(rows)
	fmt.Fprintf(columns, "total\t%d resources\t%9s\t%9s\t%9s\t%9s\t%9s\t%7s\t%d synced, %d failed\n", len(rows), Comma(int64(sum.Objects)),
		Comma(sum.Counts.Added), Comma(sum.Counts.Updated), Comma(sum.Counts.Deleted), Comma(sum.Counts.Unchanged), Round(took),
		len(rows)-failed, failed)
	return failed == 0, columns.Flush()
}
