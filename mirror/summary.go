package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// writeSummary prints the table that ends a --once run, and reports whether everything is synced.
func writeSummary(to io.Writer, rows []row, took time.Duration) (synced bool, err error) {
	columns := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "CLUSTER\tRESOURCE\t  OBJECTS\t    ADDED\t  UPDATED\t  DELETED\tUNCHANGED\t   TIME\tRESULT")
	failed := 0
	for _, r := range rows {
		result := "synced"
		if !r.synced {
			failed++
			result = "FAILED: " + r.problem
			if r.problem == "" {
				result = "FAILED: interrupted"
			}
		}
		name := r.place.resourceName()
		if name == "" {
			name = "(discovery)"
		}
		fmt.Fprintf(columns, "%s\t%s\t%9s\t%9s\t%9s\t%9s\t%9s\t%7s\t%s\n", r.place.cluster, name, comma(int64(r.rows)),
			comma(r.counts.added), comma(r.counts.updated), comma(r.counts.deleted), comma(r.counts.unchanged), round(r.took), result)
	}
	sum := total(rows)
	fmt.Fprintf(columns, "total\t%d resources\t%9s\t%9s\t%9s\t%9s\t%9s\t%7s\t%d synced, %d failed\n", len(rows), comma(int64(sum.rows)),
		comma(sum.counts.added), comma(sum.counts.updated), comma(sum.counts.deleted), comma(sum.counts.unchanged), round(took),
		len(rows)-failed, failed)
	return failed == 0, columns.Flush()
}
