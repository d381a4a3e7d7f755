package factory

import (
	"context"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// NoteWatchError makes an error known that the watch error handler of a
// cache.SharedIndexInformer was told, for the Status of the informer: the factory that
// runs it is known by ctx. It is for handlers that newFunc sets itself. Where newFunc
// sets none, the factory sets one, which does this and then what client-go does by
// default.
func NoteWatchError(ctx context.Context, r *cache.Reflector, err error) {
	if t, ok := ctx.Value(troubleKey{}).(*trouble); ok {
		t.note(err, r.LastSyncResourceVersion())
	}
}

// troubleKey is the key of a *trouble in the context of an informer.
type troubleKey struct{}

// trouble is how a cache.SharedIndexInformer fails. Client-go tells when a watch fails, and
// not when the next one succeeds; but then the resource version moves on.
type trouble struct {
	mu sync.Mutex
	failing
	// version is the resource version that was reached when it failed.
	version string
}

// failing is a row of failures, none if err is nil.
type failing struct {
	err         error // the newest
	last, since time.Time
	// reason is what err means, and reasonSince when the first of the failures was that mean the
	// same.
	reason      informer.ConditionReason
	reasonSince time.Time
	// ended is when the informer ended, zero before.
	ended time.Time
}

func (t *trouble) note(err error, version string) {
	err = redact.Error(err)
	reason, now := failure.ReasonOf(err), time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	over := t.err == nil || t.version != version
	if over {
		t.since = now
	}
	if over || t.reason != reason {
		t.reason, t.reasonSince = reason, now
	}
	t.err, t.last, t.version = err, now, version
}

// at is how it fails, unless another resource version than this was reached meanwhile.
func (t *trouble) at(version string) failing {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version != version {
		return failing{}
	}
	return t.failing
}

// failingOf is how the informer of a life fails.
func failingOf(l *life, i Informer) failing {
	switch i := i.(type) {
	case interface{ Status() informer.Status }:
		return ownFailing(i.Status())
	case cache.SharedIndexInformer:
		return l.trouble.at(i.LastSyncResourceVersion())
	}
	return failing{}
}

// ownFailing is what an informer says itself.
func ownFailing(s informer.Status) failing {
	return failing{err: s.LastError, last: s.LastErrorTime, since: s.FailingSince}
}

// noteErrorsOf sets a watch error handler where there is none.
func noteErrorsOf(i Informer) {
	shared, ok := i.(cache.SharedIndexInformer)
	if !ok || handlesErrors(reflect.ValueOf(shared)) {
		return
	}
	_ = shared.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		NoteWatchError(ctx, r, err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}) // fails only if it runs already, and then nothing is lost but the error in Status
}

// handlesErrors reports whether a watch error handler was set, or may have been. There
// is no function that says so, and setting one takes the other away: so it looks into
// client-go's type, and keeps away from all others.
func handlesErrors(shared reflect.Value) bool {
	for shared.Kind() == reflect.Pointer || shared.Kind() == reflect.Interface {
		shared = shared.Elem()
	}
	if shared.Kind() != reflect.Struct || shared.Type().PkgPath() != "k8s.io/client-go/tools/cache" {
		return true
	}
	if inner := shared.FieldByName("SharedIndexInformer"); inner.IsValid() { // a typed informer around it
		return handlesErrors(inner)
	}
	handler := shared.FieldByName("watchErrorHandler")
	return handler.Kind() != reflect.Func || !handler.IsNil()
}
