package sqlsink

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/fieldpath"
	"github.com/rvinformer/informer/internal/rv"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// VerifyOptions says how to compare rows with a cluster. The zero value is a sensible default.
type VerifyOptions struct {
	// Prune are the fields that the informer does not keep, as InformerConfig.Prune has them. Without
	// metadata.managedFields in a row, they are not compared in any case.
	Prune []string
	// PageSize is how many objects a list has at a time. Default: 500.
	PageSize int64
	// Patience is for how long a row may lag behind its object. Default: 10 seconds.
	Patience time.Duration
}

// VerifyReport is what Verify has found.
type VerifyReport struct {
	// Objects and Rows are how many there were.
	Objects, Rows int
	// Differences are what is not equal, sorted by key.
	Differences []Difference
}

// Difference is an object whose row is not equal.
type Difference struct {
	// Key is "namespace/name", or "name".
	Key string
	// Reason says what the row and the object have.
	Reason string
}

// MaxDifferences is how many differences are looked for. Verify ends when it has found more.
const MaxDifferences = 1000

// verifyTick is how often rows that lag are looked at again.
const verifyTick = 250 * time.Millisecond

// Verify compares the rows of the place with a cluster: UIDs, resource versions and the whole
// objects, byte by byte. Source lists what the informer of the place follows, without a shard.
//
// The informer may run meanwhile: what differs is looked at again until it is equal, or
// VerifyOptions.Patience is over. Of the cluster it holds a page at a time, and 8 bytes of each key.
// The error says why it could not be compared, or that ctx has ended.
func (p Place) Verify(ctx context.Context, source cache.Lister, options VerifyOptions) (VerifyReport, error) {
	options.PageSize = cmp.Or(max(options.PageSize, 0), 500)
	options.Patience = cmp.Or(max(options.Patience, 0), 10*time.Second)
	v := verification{place: p, source: cache.ToListerWithContext(source), options: options, seed: maphash.MakeSeed(),
		listed: make(map[uint64]struct{}), different: make(map[cache.ObjectName]string)}
	if err := p.sink.checked(ctx, v.run(ctx)); err != nil {
		return VerifyReport{}, fmt.Errorf("verifying %v: %w", p, err)
	}
	for name, reason := range v.different {
		v.report.Differences = append(v.report.Differences, Difference{name.String(), reason})
	}
	slices.SortFunc(v.report.Differences, func(a, b Difference) int { return strings.Compare(a.Key, b.Key) })
	return v.report, nil
}

// verification is a Verify that runs.
type verification struct {
	place   Place
	source  cache.ListerWithContext
	options VerifyOptions
	report  VerifyReport

	seed      maphash.Seed
	listed    map[uint64]struct{} // the hashes of the keys of the cluster
	version   string              // of the list
	different map[cache.ObjectName]string
}

// run compares all objects of the cluster with their rows, finds the rows without objects, and looks
// again at what differs.
func (v *verification) run(ctx context.Context) error {
	page := metav1.ListOptions{Limit: v.options.PageSize}
	for more := true; more; more = page.Continue != "" && len(v.different) <= MaxDifferences {
		objects, next, err := v.list(ctx, page)
		if err != nil {
			return err
		}
		for name := range objects {
			v.listed[maphash.Comparable(v.seed, name)] = struct{}{}
		}
		v.report.Objects += len(objects)
		if err := v.compare(ctx, objects); err != nil {
			return err
		}
		page.Continue = next
	}
	if err := v.findSuperfluous(ctx); err != nil {
		return err
	}
	if len(v.different) == 0 || len(v.different) > MaxDifferences {
		return nil
	}
	end := time.Now().Add(v.options.Patience)
	return wait.PollUntilContextCancel(ctx, verifyTick, false, func(ctx context.Context) (done bool, err error) {
		for _, name := range slices.Collect(maps.Keys(v.different)) {
			if err := v.lookAt(ctx, name); err != nil {
				return false, err
			}
		}
		return len(v.different) == 0 || time.Now().After(end), nil
	})
}

// list returns the objects of a page that are in the shard of the place, and the token of the next.
func (v *verification) list(ctx context.Context, options metav1.ListOptions) (objects map[cache.ObjectName]*unstructured.Unstructured, next string, err error) {
	page, err := v.source.ListWithContext(ctx, options)
	if err != nil {
		return nil, "", err
	}
	about, err := meta.ListAccessor(page)
	if err != nil {
		return nil, "", err
	}
	v.version = about.GetResourceVersion()
	objects = make(map[cache.ObjectName]*unstructured.Unstructured)
	err = meta.EachListItem(page, func(item runtime.Object) error {
		object, err := unstructuredOf(item)
		if err == nil && v.place.at.unit.Shard.Includes(object.GetNamespace(), string(object.GetUID())) {
			objects[cache.MetaObjectToName(object)] = object
		}
		return err
	})
	return objects, about.GetContinue(), err
}

func unstructuredOf(item runtime.Object) (*unstructured.Unstructured, error) {
	switch item := item.(type) {
	case *unstructured.Unstructured:
		return item, nil
	case *informer.RawObject:
		return item.Unstructured()
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
	return &unstructured.Unstructured{Object: fields}, err
}

// compare notes which of some objects differ from their rows. An object is nil where there is none.
func (v *verification) compare(ctx context.Context, objects map[cache.ObjectName]*unstructured.Unstructured) error {
	for name, object := range objects {
		if v.different[name] = noRow; object == nil {
			delete(v.different, name)
		}
	}
	names := slices.AppendSeq([]cache.ObjectName{}, maps.Keys(objects)) // not nil: that is all rows
	return v.place.sink.db.Objects(ctx, v.place.at, names, func(r row) error {
		name := cache.ObjectName{Namespace: r.namespace, Name: r.name}
		reason, err := v.differs(r, objects[name])
		switch {
		case reason != "":
			v.different[name] = reason
		case v.different[name] == noRow: // and not what another row of the name has
			delete(v.different, name)
		}
		return err
	})
}

// differs says in what a row differs from an object. A row of a newer version does not: the object
// is the one of before.
func (v *verification) differs(r row, object *unstructured.Unstructured) (string, error) {
	switch {
	case object == nil:
		return superfluous, nil
	case rv.Compare(r.resourceVersion, object.GetResourceVersion()) == rv.Newer:
		return "", nil
	case r.resourceVersion != object.GetResourceVersion():
		return fmt.Sprintf("the row has resource version %s, the object %s", r.resourceVersion, object.GetResourceVersion()), nil
	case r.uid != string(object.GetUID()):
		return fmt.Sprintf("the row has UID %s, the object %s", r.uid, object.GetUID()), nil
	}
	stored, err := r.decode()
	if err != nil {
		return "", err
	}
	for _, path := range v.options.Prune {
		unstructured.RemoveNestedField(object.Object, fieldpath.Split(path)...)
	}
	if _, kept, _ := unstructured.NestedFieldNoCopy(stored.Object, "metadata", "managedFields"); !kept {
		unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	}
	has, err := json.Marshal(stored.Object)
	if err != nil {
		return "", err
	}
	is, err := json.Marshal(object.Object)
	if err != nil || bytes.Equal(has, is) {
		return "", err
	}
	return fmt.Sprintf("the row has %s, the object is %s", has, is), nil
}

// findSuperfluous notes the rows of objects that the cluster does not have, unless they are newer
// than its list.
func (v *verification) findSuperfluous(ctx context.Context) error {
	return v.place.sink.db.Versions(ctx, v.place.at, func(r row) error {
		v.report.Rows++
		name := cache.ObjectName{Namespace: r.namespace, Name: r.name}
		if _, listed := v.listed[maphash.Comparable(v.seed, name)]; !listed && rv.Compare(r.resourceVersion, v.version) != rv.Newer && len(v.different) <= MaxDifferences {
			v.different[name] = superfluous
		}
		return nil
	})
}

const (
	noRow       = "there is no row"
	superfluous = "there is no object"
)

// lookAt compares an object with its row.
func (v *verification) lookAt(ctx context.Context, name cache.ObjectName) error {
	selector := fields.Set{"metadata.name": name.Name}
	if name.Namespace != "" {
		selector["metadata.namespace"] = name.Namespace
	}
	objects, _, err := v.list(ctx, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		objects[name] = nil
	}
	return v.compare(ctx, objects)
}
