package objectcache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/internal/engine/follower"
	"github.com/rvinformer/informer/internal/engine/keeper"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/gotype"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// saved is an informer as the content of its snapshots.
type saved struct{ *Informer }

var _ keeper.Content = saved{}

func (i *Informer) newSnapshots() *keeper.Snapshots {
	return keeper.NewSnapshots(keeper.Options{
		Store:     i.options.Snapshot,
		BeginAnew: i.options.BeginAnew,
		Interval:  i.options.SnapshotInterval,
		Backoff:   i.options.Backoff,
		Server:    i.setup.Server,
		Cluster:   &i.setup.Cluster,
		Report:    &i.setup.Report,
	}, saved{i}, i.settings)
}

// settings are what a snapshot must have been saved with, known when the informer has started.
func (i *Informer) settings() map[string]string {
	return map[string]string{
		"type":   typeName(i.store.goType),
		"fields": i.encodedFields(),
		"kind":   kindOf(i.example),
		"keep":   fieldList(i.options.Keep),
		"prune":  fieldList(i.options.Prune),
	}
}

// encodedFields identifies the fields that objects are encoded with. It is empty where objects are kept as
// the server has sent them, with fields that their type does not have.
func (i *Informer) encodedFields() string {
	t := i.store.goType
	if t == unstructuredType || i.setup.Resource != nil && i.into.intake.Transform == nil {
		return ""
	}
	return gotype.Fingerprint(t.Elem())
}

// kindOf returns the kind that an example says. Objects that are kept take it over, or are of that
// kind only.
func kindOf(example runtime.Object) string {
	if v := reflect.ValueOf(example); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	apiVersion, kind := example.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return strings.TrimSpace(apiVersion + " " + kind)
}

// fieldList returns the same text for the same fields.
func fieldList(fields []string) string {
	fields = slices.Clone(fields)
	slices.Sort(fields)
	return strings.Join(slices.Compact(fields), " ")
}

// resume restores the store and has f go on from there, and saves the store beside it.
func (i *Informer) resume(ctx context.Context, f *follower.Follower) {
	defer i.snapshots.End(ctx)
	from := follower.Origin{Objects: i.sample, Latest: i.latest}
	from.Resume = i.snapshots.Begin(ctx)
	from.Known = i.store.LastStoreSyncResourceVersion()
	from.Resumed = func() {
		i.syncing.Do(func() {
			i.setup.Report.Resumed(from.Resume)
			i.endInitial()
		})
	}
	running, stop := context.WithCancel(ctx)
	var saving sync.WaitGroup
	defer saving.Wait()
	defer stop()
	i.saveBeside(running, &saving)
	f.Run(ctx, &from)
}

// saveBeside saves the store until ctx ends, also when a callback has ended the goroutine.
func (i *Informer) saveBeside(ctx context.Context, saving *sync.WaitGroup) {
	saving.Go(func() {
		returned := false
		defer func() {
			if !returned && ctx.Err() == nil {
				i.saveBeside(ctx, saving)
			}
		}()
		i.snapshots.Run(ctx)
		returned = true
	})
}

// sync notes that the store has had a complete list. A snapshot may have been accepted before.
func (i *Informer) sync() { i.syncing.Do(i.endInitial) }

func (i *Informer) endInitial() {
	i.setup.Report.NoteSynced()
	close(i.synced)
	i.changelog.endInitial()
	i.reach()
}

// changed notes that the store has changed.
func (i *Informer) changed() {
	if i.snapshots != nil {
		i.snapshots.Changed()
	}
}

// beginCovering notes that a list begins.
func (s *storeSink) beginCovering() {
	i := s.informer
	i.lists.begin()
	i.changelog.applying.Lock()
	s.trust.Begin(s.claimLocked(s.observed.load().ResourceVersion), i.setup.Cluster.Replaced())
	s.covers.Begin(i.setup.Report.Gaps.Count())
	i.changelog.applying.Unlock()
	if i.snapshots != nil {
		i.snapshots.Listed()
	}
}

// claimLocked returns resourceVersion if the store has everything up to what was observed, and else
// nothing. The caller holds applying.
func (s *storeSink) claimLocked(resourceVersion string) string {
	return s.covers.Claim(resourceVersion, s.informer.setup.Report.Gaps.Count())
}

// resumeLocked returns the resource version from which a watch tells all that the store does not
// have, empty if it would not. The caller holds applying.
func (s *storeSink) resumeLocked() string { return s.claimLocked(s.resume) }

func (c saved) Resume() string {
	c.changelog.applying.Lock()
	defer c.changelog.applying.Unlock()
	return c.into.resumeLocked()
}

func (c saved) State() keeper.State {
	c.changelog.applying.Lock()
	defer c.changelog.applying.Unlock()
	sn := c.store.snapshot()
	return keeper.State{Resume: c.into.resumeLocked(), Sample: c.sample(), Write: func(w *checkpoint.PayloadWriter) error {
		if err := c.mayWrite(sn); err != nil {
			return err
		}
		sn.write(w)
		return nil
	}}
}

// Restore fills the store, and tells the handlers.
func (c saved) Restore(ctx context.Context, resume string, from *checkpoint.PayloadReader) error {
	defer c.reportFailures()
	c.changelog.applying.Lock()
	defer c.changelog.applying.Unlock()
	err := failure.Guard(ctx, c.setup.Report.NoteFailure, func() error { return c.store.restore(from) })
	if err != nil && from.Err() == nil {
		return fmt.Errorf("%w: %w", keeper.ErrUnfit, err)
	}
	if err != nil {
		return err
	}
	// The newest change may not have been observed before it was saved. It is not told again.
	observed := resume
	if last := c.store.LastStoreSyncResourceVersion(); resume != "" && rv.Compare(last, resume) == rv.Newer {
		observed = last
	}
	c.into.observed.store(rv.At(observed))
	c.into.resume = resume
	c.into.covers.Begin(c.setup.Report.Gaps.Count())
	c.into.covers.End(resume != "")
	if restored := c.store.all(); restored.len() > 0 {
		restored.initial = true
		c.changelog.append(nil, event{batch: restored, arrived: moment.Now()})
	}
	return nil
}

// Lookup reads a snapshot into a store of its own.
func (c saved) Lookup(from *checkpoint.PayloadReader) (lookup func(key string) (keytable.Version, bool), err error) {
	aside := NewStore(c.example, nil, StoreOptions{})
	if err := aside.restore(from); err != nil {
		if from.Err() == nil {
			err = fmt.Errorf("%w: %w", keeper.ErrUnfit, err)
		}
		return nil, err
	}
	return aside.version, nil
}

// errSecrets says that Secrets would be written.
var errSecrets = errors.New("the Snapshot of an informer of Secrets would have what they hold: set SnapshotSecrets if that is meant, or set no Snapshot")

// errUnknownKind says that Secrets may be written.
var errUnknownKind = errors.New("the Snapshot may have what Secrets hold, because nothing says the kind of its objects: use an example that says its kind, or a ListerWatcher of an informer.DynamicListerWatcherFactory; or set SnapshotSecrets if that is meant")

var secrets = schema.GroupResource{Resource: "secrets"}

func (o Options) refusesSecrets() bool { return o.Snapshot != nil && !o.SnapshotSecrets }

// checkSecrets returns the error of a Snapshot that would have Secrets, or may have them, as far as
// the source and the example tell.
func (o Options) checkSecrets(source *server.Resource, example runtime.Object) error {
	switch {
	case !o.refusesSecrets():
		return nil
	case source != nil && source.GroupResource() == secrets:
		return errSecrets
	case source == nil && !isLoose(example) && !saysKind(example):
		return errUnknownKind
	default:
		return nil
	}
}

// isLoose reports whether the objects are unstructured, so that each of them may say its kind.
func isLoose(example runtime.Object) bool {
	_, loose := example.(*unstructured.Unstructured)
	return loose || example == nil
}

// saysKind reports whether an example says the kind of the objects, itself or by its Go type.
func saysKind(example runtime.Object) bool {
	v := reflect.ValueOf(example)
	if !v.IsValid() {
		return false
	}
	if isOwnType(v.Type()) {
		return true
	}
	return !(v.Kind() == reflect.Pointer && v.IsNil()) && example.GetObjectKind().GroupVersionKind().Kind != ""
}

// isOwnType reports whether a type is one of Kubernetes' own, which is of one kind. A type of a program may be
// of Secrets whatever its name is.
func isOwnType(t reflect.Type) bool {
	return isStruct(t) && strings.HasPrefix(t.Elem().PkgPath(), "k8s.io/api/")
}

// mayWrite returns the error of a snapshot that has Secrets, or may have them, and must not.
func (i *Informer) mayWrite(sn *snapshot) error {
	switch {
	case !i.options.refusesSecrets():
		return nil
	case sn.hasSecrets():
		return errSecrets
	case i.setup.Resource == nil && !saysKind(i.example) && sn.hasUnknownKinds():
		return errUnknownKind
	default:
		return nil
	}
}

// isSecret reports whether an example is a Secret, as far as it tells.
func isSecret(example runtime.Object) bool {
	v := reflect.ValueOf(example)
	if example == nil || isSecretType(v.Type()) || v.Kind() == reflect.Pointer && v.IsNil() {
		return example != nil && isSecretType(v.Type())
	}
	return example.GetObjectKind().GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

func isSecretType(t reflect.Type) bool {
	return isStruct(t) && typeName(t) == "k8s.io/api/core/v1.Secret"
}

// noteKind notes that an unstructured object is a Secret, or says no kind. It says so in its bytes
// only, and its form does not.
func (s *Store) noteKind(obj runtime.Object) {
	u, unstructured := obj.(*unstructured.Unstructured)
	if !unstructured {
		return
	}
	switch kind := u.GetKind(); {
	case kind == "" && !s.kindless.Load():
		s.kindless.Store(true)
	case kind == "Secret" && u.GetAPIVersion() == "v1" && !s.secrets.Load():
		s.secrets.Store(true)
	}
}

// hasSecrets reports whether a snapshot has, or may have, objects that say that they are Secrets.
func (sn *snapshot) hasSecrets() bool {
	return sn.secrets || slices.ContainsFunc(sn.forms, func(f *form) bool {
		return isSecretType(f.goType) || f.kind.Kind == "Secret" && f.kind.APIVersion == "v1"
	})
}

// hasUnknownKinds reports whether a snapshot has, or may have, objects that say no kind: unstructured
// ones, metadata, or those of a type of the program.
func (sn *snapshot) hasUnknownKinds() bool {
	return sn.kindless || slices.ContainsFunc(sn.forms, func(f *form) bool { return f.goType != unstructuredType && !isOwnType(f.goType) && f.kind.Kind == "" })
}
