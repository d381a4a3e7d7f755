package display

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Unreached are the clusters that have not said what they have.
func Unreached(rows []Row) (names []string) {
	for _, r := range rows {
		if r.Unknown {
			names = append(names, r.Place.Cluster)
		}
	}
	return names
}

// WriteSummary prints the table that ends a --once run, and reports whether everything is synced.
func WriteSummary(to io.Writer, rows []Row, took time.Duration) (synced bool, err error) {
	columns := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "CLUSTER\tRESOURCE\t  OBJECTS\t    ADDED\t  UPDATED\t  DELETED\tUNCHANGED\t   TIME\tRESULT")
	write := func(cluster, name string, r Row, result string) {
		fmt.Fprintf(columns, "%s\t%s\t%9s\t%9s\t%9s\t%9s\t%9s\t%7s\t%s\n", cluster, name, Comma(int64(r.Objects)),
			Comma(r.Counts.Added), Comma(r.Counts.Updated), Comma(r.Counts.Deleted), Comma(r.Counts.Unchanged), Round(r.Took), result)
	}
	failed := 0
	for _, r := range rows {
		result := "synced"
		if !r.Synced {
			failed++
			result = "FAILED: " + cmp.Or(r.Problem, "interrupted")
		}
		write(r.Place.Cluster, cmp.Or(r.Place.Name(), "(discovery)"), r, result)
	}
	sum := Total(rows)
	sum.Took = took
	write("total", fmt.Sprintf("%d resources", len(rows)), sum, fmt.Sprintf("%d synced, %d failed", len(rows)-failed, failed))
	return failed == 0, columns.Flush()
}
