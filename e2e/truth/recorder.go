package truth

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer/informertest/oracle"
)

const (
	// reconnectPause is how soon etcd is asked again that was away. It is short, so
	// that a write is recorded about when an API server can tell of it.
	reconnectPause = 50 * time.Millisecond

	// marker is a key of no resource: when the recorder sees it written, it has seen
	// everything before.
	marker = "/rvinformer-e2e/marker"
)

// Sink is told of all writes to the followed objects, in order, and of those to
// anything else as oracle.Other. It must not call the recorder.
type Sink interface {
	Wrote(oracle.Write)
	Restored(resourceVersion string, state []oracle.Write)
}

// Recorder follows the objects of one resource in one namespace, in etcd. It is
// safe for concurrent use.
type Recorder struct {
	client *clientv3.Client
	prefix string // of the keys of the objects

	following *following // nil while etcd is restored; belongs to Restore and Close

	mu       sync.Mutex
	revision int64             // up to here everything is recorded
	objects  map[string]object // what exists, by the key in etcd
	sinks    []Sink
	failed   error         // why no more is recorded
	changed  chan struct{} // closed and replaced when revision or failed changes
}

// following is one goroutine that follows etcd.
type following struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (f *following) stop() {
	f.cancel()
	<-f.done
}

// Follow begins to record what is written to the resource in the namespace, or in
// all for an empty one. The etcd at the URL has to be up; later it may go, and come
// back with the same data. The caller owns the recorder and must Close it.
func Follow(ctx context.Context, etcdURL string, resource schema.GroupVersionResource, namespace string) (*Recorder, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{etcdURL},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnectPause, Multiplier: 1, MaxDelay: reconnectPause},
			MinConnectTimeout: time.Second,
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("following etcd: %w", err)
	}
	r := &Recorder{client: client, prefix: prefixOf(resource, namespace), changed: make(chan struct{})}
	if err := r.readAll(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	r.resume()
	return r, nil
}

// prefixOf is where an API server keeps the objects of a resource.
func prefixOf(resource schema.GroupVersionResource, namespace string) string {
	prefix := "/registry/" + resource.Resource + "/"
	if strings.Contains(resource.Group, ".") { // a custom resource
		prefix = "/registry/" + resource.Group + "/" + resource.Resource + "/"
	}
	if namespace != "" {
		prefix += namespace + "/"
	}
	return prefix
}

// Attach tells the sink what there is now, as Restored, and then everything that is
// written.
func (r *Recorder) Attach(s Sink) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Restored(r.stateLocked())
	r.sinks = append(r.sinks, s)
}

// Reach returns when everything is recorded that was written before it was called,
// and the revision that it came to.
func (r *Recorder) Reach(ctx context.Context) (int64, error) {
	put, err := r.client.Put(ctx, marker, "")
	if err != nil {
		return 0, fmt.Errorf("asking etcd for its revision: %w", err)
	}
	want := put.Header.Revision
	for {
		r.mu.Lock()
		revision, failed, changed := r.revision, r.failed, r.changed
		r.mu.Unlock()
		switch {
		case failed != nil:
			return 0, failed
		case revision >= want:
			return revision, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("recording up to revision %d, now at %d: %w", want, revision, context.Cause(ctx))
		}
	}
}

// Versions returns what exists, as far as is recorded: resource versions by
// "namespace/name", or "name".
func (r *Recorder) Versions() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	versions := make(map[string]string, len(r.objects))
	for _, o := range r.objects {
		versions[o.key] = o.version()
	}
	return versions
}

// Restore stops recording, calls restore, which replaces the data of etcd by older
// data and starts it again, and records what there is then, as Restored. It is not
// for several goroutines at once.
func (r *Recorder) Restore(ctx context.Context, restore func() error) error {
	// Whoever went on from the last revision would hear nothing until etcd came to it
	// again.
	r.following.stop()
	r.following = nil
	if err := restore(); err != nil {
		return err
	}
	if err := r.readAll(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	for _, s := range r.sinks {
		s.Restored(r.stateLocked())
	}
	r.mu.Unlock()
	r.resume()
	return nil
}

// Close ends the recording, and returns why it ended before, if it did.
func (r *Recorder) Close() error {
	if r.following != nil {
		r.following.stop()
	}
	err := r.client.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return r.failed
	}
	if err != nil {
		return fmt.Errorf("following etcd: %w", err)
	}
	return nil
}

// stateLocked is what Restored is told. It is the caller's to keep.
func (r *Recorder) stateLocked() (string, []oracle.Write) {
	state := make([]oracle.Write, 0, len(r.objects))
	for _, o := range r.objects {
		state = append(state, oracle.Write{Type: oracle.Created, Key: o.key, UID: o.uid, ResourceVersion: o.version()})
	}
	return versionOf(r.revision), state
}

func versionOf(revision int64) string { return strconv.FormatInt(revision, 10) }

// readAll reads what exists.
func (r *Recorder) readAll(ctx context.Context) error {
	all, err := r.client.Get(ctx, r.prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("reading %s from etcd: %w", r.prefix, err)
	}
	objects := make(map[string]object, len(all.Kvs))
	for _, kv := range all.Kvs {
		if objects[string(kv.Key)], err = decode(kv); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision, r.objects = all.Header.Revision, objects
	return nil
}

func (r *Recorder) resume() {
	ctx, cancel := context.WithCancel(context.Background())
	f := &following{cancel: cancel, done: make(chan struct{})}
	r.following = f
	go func() {
		defer close(f.done)
		r.follow(ctx)
	}()
}

// follow watches until ctx ends, again from where it was when etcd has gone.
func (r *Recorder) follow(ctx context.Context) {
	for ctx.Err() == nil && r.watch(ctx) {
		select {
		case <-time.After(reconnectPause):
		case <-ctx.Done():
		}
	}
}

// watch records what one watch tells, and returns whether another one may tell
// more. It is of all keys: one of some would not tell how far it has come.
func (r *Recorder) watch(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for answer := range r.client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(r.next())) {
		if answer.CompactRevision != 0 {
			r.fail(fmt.Errorf("etcd was compacted at %d, and writes before are not recorded", answer.CompactRevision))
			return false
		}
		if answer.Err() != nil {
			return true
		}
		if err := r.record(answer.Events); err != nil {
			r.fail(err)
			return false
		}
	}
	return true
}

func (r *Recorder) next() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revision + 1
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = fmt.Errorf("following %s in etcd: %w", r.prefix, err)
	r.changedLocked()
}

func (r *Recorder) changedLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Recorder) record(events []*clientv3.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.changedLocked()
	for _, e := range events {
		write, err := r.writeLocked(e)
		if err != nil {
			return err
		}
		for _, s := range r.sinks {
			s.Wrote(write)
		}
		r.revision = e.Kv.ModRevision
	}
	return nil
}

// writeLocked is what an event of etcd means, and notes what exists then.
func (r *Recorder) writeLocked(e *clientv3.Event) (oracle.Write, error) {
	key := string(e.Kv.Key)
	if !strings.HasPrefix(key, r.prefix) {
		return oracle.Write{Type: oracle.Other, ResourceVersion: versionOf(e.Kv.ModRevision)}, nil
	}
	before, existed := r.objects[key]
	if e.Type == clientv3.EventTypeDelete {
		if !existed {
			return oracle.Write{}, fmt.Errorf("%s was deleted at revision %d, and never written", key, e.Kv.ModRevision)
		}
		delete(r.objects, key)
		return oracle.Write{Type: oracle.Deleted, Key: before.key, UID: before.uid, ResourceVersion: versionOf(e.Kv.ModRevision)}, nil
	}
	now, err := decode(e.Kv)
	if err != nil {
		return oracle.Write{}, err
	}
	r.objects[key] = now
	write := oracle.Write{Type: oracle.Updated, Key: now.key, UID: now.uid, ResourceVersion: now.version()}
	if !existed {
		write.Type = oracle.Created
	}
	return write, nil
}
