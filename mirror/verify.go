package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer/informertest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// catchUpTick is how often a feed is asked how far it is.
const catchUpTick = 10 * time.Millisecond

// maxDifferences bounds the differences that are named.
const maxDifferences = 5

// verify waits until the database has caught up with the demo's servers, on which nothing may
// change meanwhile, and compares every object, byte by byte. The text says that all is equal;
// otherwise the error names what is not.
func verify(ctx context.Context, m *mirror, simulated *demo) (string, error) {
	if err := catchUp(ctx, m, simulated); err != nil {
		return "", fmt.Errorf("not verified: %w", err)
	}
	rows := 0
	var differences []error
	for _, c := range simulated.clusters {
		for _, s := range c.stock {
			at := place{cluster: c.name, resource: s.kind.resource}
			if _, found := m.Feed(at); !found {
				continue // --resources leaves it out
			}
			n, different, err := compare(ctx, m.database, at, c.server)
			if err != nil {
				return "", fmt.Errorf("not verified: %w", err)
			}
			rows, differences = rows+n, append(differences, different...)
		}
	}
	if n := len(differences); n > 0 {
		return "", fmt.Errorf("the database does not equal the servers, %s differences, the first of them: %w",
			comma(int64(n)), errors.Join(differences[:min(n, maxDifferences)]...))
	}
	return fmt.Sprintf("verified: %s rows equal %d servers", comma(int64(rows)), len(simulated.clusters)), nil
}

// catchUp makes one last change of every resource, and waits until its resource version, and so all
// before it, is acknowledged: the database has it then.
func catchUp(ctx context.Context, m *mirror, simulated *demo) error {
	for _, c := range simulated.clusters {
		for _, s := range c.stock {
			f, found := m.Feed(place{cluster: c.name, resource: s.kind.resource})
			if !found {
				continue
			}
			last, err := s.Update(0)
			if err != nil {
				return err
			}
			if err := f.reach(ctx, last); err != nil {
				return err
			}
		}
	}
	return nil
}

// reach waits until everything up to a resource version is in the database. The empty one is
// reached already.
func (f *feed) reach(ctx context.Context, resourceVersion string) error {
	if resourceVersion == "" {
		return nil
	}
	err := wait.PollUntilContextCancel(ctx, catchUpTick, true, func(context.Context) (bool, error) {
		at := f.informer.Status().ResourceVersion
		if at == "" {
			return false, nil
		}
		order, err := resourceversion.CompareResourceVersion(at, resourceVersion)
		return order >= 0, err
	})
	if err != nil {
		return fmt.Errorf("%s has reached resource version %s of %s: %w", f.place, f.informer.Status().ResourceVersion, resourceVersion, err)
	}
	return nil
}

// compare returns the number of rows and what differs from the server. It holds one object at a
// time, and the server's keys.
func compare(ctx context.Context, db database, at place, server *informertest.Server) (rows int, differences []error, err error) {
	missing, err := server.ResourceVersions(at.resource, "")
	if err != nil {
		return 0, nil, fmt.Errorf("listing %s: %w", at, err)
	}
	err = db.Objects(ctx, at, func(row change) error {
		rows++
		key := cache.ObjectName{Namespace: row.namespace, Name: row.name}.String()
		if _, exists := missing[key]; !exists {
			differences = append(differences, fmt.Errorf("%s %s is in the database only", at, key))
			return nil
		}
		delete(missing, key)
		object, err := server.Get(at.resource, row.namespace, row.name)
		if err != nil {
			return fmt.Errorf("%s %s: %w", at, key, err)
		}
		different, err := differs(row, object)
		if different != "" {
			differences = append(differences, fmt.Errorf("%s %s: %s", at, key, different))
		}
		return err
	})
	for key := range missing {
		differences = append(differences, fmt.Errorf("%s %s is on the server only", at, key))
	}
	slices.SortFunc(differences, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return rows, differences, err
}

// differs says in what a row differs from the object on the server. managedFields count only if the
// row has any.
func differs(row change, object *unstructured.Unstructured) (string, error) {
	switch {
	case row.uid != string(object.GetUID()):
		return fmt.Sprintf("the row has UID %s, the server %s", row.uid, object.GetUID()), nil
	case row.resourceVersion != object.GetResourceVersion():
		return fmt.Sprintf("the row has resource version %s, the server %s", row.resourceVersion, object.GetResourceVersion()), nil
	}
	if !strings.Contains(row.object, `"managedFields":`) {
		unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	}
	text, err := encode(object)
	if err != nil {
		return "", err
	}
	if text != row.object {
		return fmt.Sprintf("the row has %s, the server %s", row.object, text), nil
	}
	return "", nil
}
