package objectcache

import (
	"context"
	"sync"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/edge/audit"
	"github.com/rvinformer/informer/internal/edge/auditor"
	"github.com/rvinformer/informer/internal/engine/source"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Audit compares the objects that readers see with the server, while both change: their keys,
// resource versions and UIDs. It is that of an informer.ResourceVersionInformer in all else. A
// repair changes the store and calls handlers, as a list does.
func (i *Informer) Audit(ctx context.Context, opts informer.AuditOptions) (informer.AuditReport, error) {
	return i.auditor().Audit(ctx, opts)
}

// auditBeside audits the informer from time to time, if it is to be, until ctx ends or the returned
// function is called, which waits for the end.
func (i *Informer) auditBeside(ctx context.Context) (stop func()) {
	if i.options.AuditEvery == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var auditing sync.WaitGroup
	auditing.Go(func() { i.auditor().Repeat(ctx, i.options.AuditEvery, i.options.AuditOptions) })
	return func() {
		cancel()
		auditing.Wait()
	}
}

func (i *Informer) auditor() auditor.Auditor {
	return auditor.Auditor{
		Setup: &i.setup, PageSize: i.options.WatchListPageSize, Patience: source.Patience(i.options.StallTimeout), Informer: i.audited,
	}
}

// audited returns the informer as an audit sees it, or why it cannot be audited.
func (i *Informer) audited() (audit.Informer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case !i.started || i.stopped:
		return nil, informer.ErrNotRunning
	case !i.HasSynced():
		return nil, informer.ErrNotSynced
	}
	return audited{i}, nil
}

// audited is an informer as an audit sees it.
type audited struct{ *Informer }

func (a audited) OnDeletion(deleted func(key, resourceVersion string)) (stop func()) {
	a.into.deleted.Store(&deleted)
	return func() { a.into.deleted.Store(nil) }
}

func (a audited) Acknowledged() string { return a.readable() }

func (a audited) Told() string { return a.into.observed.load().Resume() }

func (a audited) Await(ctx context.Context, resourceVersion string) error {
	return a.WaitUntil(ctx, resourceVersion)
}

// AwaitRead returns at once: readers see what was read.
func (a audited) AwaitRead(context.Context) error { return nil }

func (a audited) News() (news int64, watches bool) { return a.setup.Report.News() }

func (a audited) ListAgain(ctx context.Context) error { return a.lists.again(ctx) }

func (a audited) Len() int { return a.objects.Len() }

func (a audited) Compare(key string, v keytable.Version) keytable.Comparison {
	same := a.objects.unchanged(key, v)
	return keytable.Comparison{SameVersion: same, SameObject: same}
}

func (a audited) Get(key string) (keytable.Version, bool) { return a.objects.version(key) }

func (a audited) LendFrom(cursor keytable.Cursor, most int, visit func(key string, v *keytable.Binary)) keytable.Cursor {
	return a.objects.lendFrom(cursor, most, visit)
}

// lendFrom lends visit the next keys and resource versions, and returns where to go on. If slots
// were moved meanwhile, that is at the beginning. Visit must not use the store.
func (s *Store) lendFrom(cursor keytable.Cursor, most int, visit func(key string, v *keytable.Binary)) keytable.Cursor {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.table
	from, moves := uint32(cursor), uint32(cursor>>32)
	if moves != t.moves {
		from = 0
	}
	for n := max(1, from); n < t.slots.len; n++ {
		of := t.slots.at(n)
		if of.flags&live == 0 {
			continue
		}
		if most == 0 {
			return keytable.Cursor(t.moves)<<32 | keytable.Cursor(n)
		}
		most--
		v := keytable.Binary{Number: of.number, IsNumber: of.flags&hasNumber != 0}
		_, v.Text = splitHead(t.pack.Head(of.ref), v.IsNumber)
		visit(t.key(n), &v)
	}
	return 0
}

func (s *decodedStore) unchanged(key string, v keytable.Version) bool {
	return v.SameState(versionOf(s.get(key)))
}

// lendFrom lends visit all keys and resource versions.
func (s *decodedStore) lendFrom(_ keytable.Cursor, _ int, visit func(key string, v *keytable.Binary)) keytable.Cursor {
	for _, key := range s.ListKeys() {
		if known, ok := s.version(key); ok {
			v := known.Binary()
			visit(key, &v)
		}
	}
	return 0
}

// lists counts the lists that were begun and stored, and has others begun.
type lists struct {
	mu           sync.Mutex
	begun, ended uint64
	// relist has a list begun, nil while the informer does not run.
	relist func()
	// changed is closed when one of them changes. It is nil unless something waits for that.
	changed chan struct{}
}

// run notes that the informer runs, and how a list is begun; nil notes that it has ended.
func (l *lists) run(relist func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.relist = relist
	l.wakeLocked()
}

func (l *lists) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun++
}

// end notes that the list that was begun last is stored.
func (l *lists) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = l.begun
	l.wakeLocked()
}

func (l *lists) wakeLocked() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// again has a list begun, and returns when it is stored. The error is that of ctx, or
// informer.ErrNotRunning.
func (l *lists) again(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.relist == nil {
		return informer.ErrNotRunning
	}
	before := l.begun
	l.relist()
	for l.ended <= before {
		if err := l.awaitLocked(ctx); err != nil {
			return err
		}
		if l.relist == nil {
			return informer.ErrNotRunning
		}
	}
	return nil
}

func (l *lists) awaitLocked(ctx context.Context) error {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	changed := l.changed
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
