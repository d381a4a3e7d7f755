// Package verify compares a database with the clusters of a demo.
package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/mirror/internal/demo"
	"github.com/rvinformer/informer/mirror/internal/display"
	"github.com/rvinformer/informer/sqlsink"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxDifferences bounds the differences that are named.
const maxDifferences = 5

// Demo compares every object of the clusters of a demo, on which nothing may change meanwhile, with
// the database, which may have to catch up. Those that are not mirrored are left out. The text says
// that all is equal; otherwise the error names what is not.
func Demo(ctx context.Context, db *sqlsink.Sink, of *demo.Demo, mirrored sets.Set[display.Place]) (string, error) {
	rows := 0
	var differences []error
	for _, c := range of.Clusters {
		listers, err := informer.NewDynamicListerWatcherFactory(c.Server.Config())
		if err != nil {
			return "", fmt.Errorf("not verified: %w", err)
		}
		for _, s := range c.Stock {
			resource := s.Kind.Resource
			if !mirrored.Has(display.Place{Cluster: c.Name, Resource: resource.GroupResource()}) {
				continue
			}
			report, err := db.Place(c.Name, resource).Verify(ctx, listers.ForResource("", resource), sqlsink.VerifyOptions{})
			if err != nil {
				return "", fmt.Errorf("not verified: %w", err)
			}
			rows += report.Rows
			for _, d := range report.Differences {
				differences = append(differences, fmt.Errorf("%s %s %s: %s", c.Name, resource.GroupResource(), d.Key, d.Reason))
			}
		}
	}
	if n := len(differences); n > 0 {
		return "", fmt.Errorf("the database does not equal the servers, %s differences, the first of them: %w",
			display.Comma(int64(n)), errors.Join(differences[:min(n, maxDifferences)]...))
	}
	return fmt.Sprintf("verified: %s rows equal %d servers", display.Comma(int64(rows)), len(of.Clusters)), nil
}
