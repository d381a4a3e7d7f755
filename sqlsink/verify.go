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
	"github.com/rvinformer/informer/internal/leaf/fieldpath"
	"github.com/rvinformer/informer/internal/leaf/rv"
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
// VerifyOptions.Patience is over. A row that is newer than its object is looked at again, too: it
// differs if the cluster, asked afterwards, has no such state. A cluster that was restored from a
// backup has lost it. Of the cluster it holds a page at a time, and 8 bytes of each key.
// The error says why it could not be compared, or that ctx has ended.
func (p Place) Verify(ctx context.Context, source cache.Lister, options VerifyOptions) (VerifyReport, error) {
	options.PageSize = cmp.Or(max(options.PageSize, 0), 500)
	options.Patience = cmp.Or(max(options.Patience, 0), 10*time.Second)
	v := verification{place: p, source: cache.ToListerWithContext(source), options: options, seed: maphash.MakeSeed(),
		listed: make(map[uint64]struct{}), different: make(map[cache.ObjectName]finding), ahead: make(map[cache.ObjectName]finding)}
	if err := p.sink.checked(ctx, v.run(ctx)); err != nil {
		return VerifyReport{}, fmt.Errorf("verifying %v: %w", p, err)
	}
	for name, found := range v.different {
		v.report.Differences = append(v.report.Differences, Difference{name.String(), found.reason})
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
	different map[cache.ObjectName]finding
	// ahead are the rows that are newer than what the cluster has shown. They have to be looked at again.
	ahead map[cache.ObjectName]finding
}

// finding is what was found of an object that is not equal to its row. Row is the resource version of
// a row that is newer, empty for any other.
type finding struct{ reason, row string }

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
		if err := v.compare(ctx, objects, v.ahead); err != nil {
			return err
		}
		page.Continue = next
	}
	if err := v.findSuperfluous(ctx); err != nil {
		return err
	}
	if len(v.different)+len(v.ahead) == 0 || len(v.different) > MaxDifferences {
		return nil
	}
	end := time.Now().Add(v.options.Patience)
	return wait.PollUntilContextCancel(ctx, verifyTick, false, func(ctx context.Context) (done bool, err error) {
		for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(v.different)), maps.Keys(v.ahead)) {
			if err := v.lookAt(ctx, name); err != nil || len(v.different) > MaxDifferences {
				return true, err
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
// Rows that are newer than the objects, and were not found so before, go to newer.
func (v *verification) compare(ctx context.Context, objects map[cache.ObjectName]*unstructured.Unstructured, newer map[cache.ObjectName]finding) error {
	found := make(map[cache.ObjectName]finding)
	for name, object := range objects {
		if object != nil {
			found[name] = finding{reason: noRow}
		}
	}
	names := slices.AppendSeq([]cache.ObjectName{}, maps.Keys(objects)) // not nil: that is all rows
	err := v.place.sink.db.Objects(ctx, v.place.at, names, func(r row) error {
		name := cache.ObjectName{Namespace: r.namespace, Name: r.name}
		differs, err := v.differs(r, objects[name], cmp.Or(v.ahead[name].row, v.different[name].row))
		switch {
		case differs.reason != "":
			found[name] = differs
		case found[name].reason == noRow: // and not what another row of the name has
			delete(found, name)
		}
		return err
	})
	for name := range objects {
		delete(v.ahead, name)
		delete(v.different, name)
		if f, ok := found[name]; ok && f.row != "" {
			newer[name] = f
		} else if ok {
			v.different[name] = f
		}
	}
	return err
}

// differs says in what a row differs from an object, and nothing if it is equal. Before is the version
// of a row that was newer when it was read before the object was listed, empty for none. If the object
// has come to that since, the row is of a state that the cluster has had, and may be newer again.
func (v *verification) differs(r row, object *unstructured.Unstructured, before string) (finding, error) {
	if object == nil {
		return finding{reason: superfluous}, nil
	}
	if rv.Compare(r.resourceVersion, object.GetResourceVersion()) != rv.Newer {
		reason, err := v.unequal(r, object)
		return finding{reason: reason}, err
	}
	if before != "" && rv.Compare(before, object.GetResourceVersion()) != rv.Newer {
		return finding{}, nil
	}
	return finding{fmt.Sprintf("the row has resource version %s, newer than the object's %s", r.resourceVersion, object.GetResourceVersion()), r.resourceVersion}, nil
}

// unequal says in what a row differs from an object that is not older, empty for nothing.
func (v *verification) unequal(r row, object *unstructured.Unstructured) (string, error) {
	switch {
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

// findSuperfluous notes the rows of objects that the list of the cluster does not have. Those that are
// newer than the list may be of objects that were created since.
func (v *verification) findSuperfluous(ctx context.Context) error {
	return v.place.sink.db.Versions(ctx, v.place.at, func(r row) error {
		v.report.Rows++
		name := cache.ObjectName{Namespace: r.namespace, Name: r.name}
		_, listed := v.listed[maphash.Comparable(v.seed, name)]
		switch {
		case listed:
		case rv.Compare(r.resourceVersion, v.version) == rv.Newer:
			v.ahead[name] = finding{superfluous, r.resourceVersion}
		case len(v.different) <= MaxDifferences:
			v.different[name] = finding{reason: superfluous}
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
	return v.compare(ctx, objects, v.different)
}
