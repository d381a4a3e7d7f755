package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/sqlsink"
)

// maxDifferences bounds the differences that are named.
const maxDifferences = 5

// Verify compares every object of the clusters, on which nothing may change meanwhile, with a
// database, which may have to catch up. Those whose row is not synced are left out. The text says
// that all is equal, and is empty if there was nothing to compare; the error names what is not equal.
func (d Demo) Verify(ctx context.Context, db *sqlsink.Sink, rows []display.Row) (string, error) {
	found := 0
	var differences []error
	for _, c := range d {
		listers, err := informer.NewDynamicListerWatcherFactory(c.Server.Config())
		if err != nil {
			return "", fmt.Errorf("not verified: %w", err)
		}
		for _, s := range c.Stock {
			resource := s.Kind.Resource
			place := display.Place{Cluster: c.Name, Resource: resource.GroupResource()}
			if !slices.ContainsFunc(rows, func(r display.Row) bool { return r.Place == place && r.Synced }) {
				continue
			}
			report, err := db.Place(c.Name, resource).Verify(ctx, listers.ForResource("", resource), sqlsink.VerifyOptions{})
			if err != nil {
				return "", fmt.Errorf("not verified: %w", err)
			}
			found += report.Rows
			for _, one := range report.Differences {
				differences = append(differences, fmt.Errorf("%s %s: %s", place, one.Key, one.Reason))
			}
		}
	}
	if n := len(differences); n > 0 {
		return "", fmt.Errorf("the database does not equal the servers, %s differences, the first of them: %w",
			display.Comma(int64(n)), errors.Join(differences[:min(n, maxDifferences)]...))
	}
	if found == 0 {
		return "", nil
	}
	return fmt.Sprintf("verified: %s rows equal %d servers", display.Comma(int64(found)), len(d)), nil
}
