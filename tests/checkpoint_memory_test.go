package tests_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/checkpoint"
	"github.com/rvinformer/informer/internal/keytable"
)

// memoryCheckpoint is a CheckpointStore in memory. What is set of its functions is asked first.
type memoryCheckpoint struct {
	// onLoad returns what Load does, or errPass.
	onLoad func(ctx context.Context) (io.ReadCloser, error)
	// onSave may fail the n-th Save, from 1, or wait, before anything is written.
	onSave func(ctx context.Context, n int) error

	mu sync.Mutex
	// content is nil where nothing was saved yet.
	content []byte
	// asked and done count the Saves that began and that succeeded.
	asked, done int
}

var _ informer.CheckpointStore = &memoryCheckpoint{}

func (s *memoryCheckpoint) Load(ctx context.Context) (io.ReadCloser, error) {
	if s.onLoad != nil {
		if r, err := s.onLoad(ctx); !errors.Is(err, errPass) {
			return r, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.content == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(s.content)), nil
}

func (s *memoryCheckpoint) Save(ctx context.Context, write func(io.Writer) error) error {
	s.mu.Lock()
	s.asked++
	n := s.asked
	s.mu.Unlock()
	if s.onSave != nil {
		if err := s.onSave(ctx, n); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content = b.Bytes()
	s.done++
	return nil
}

// attempts is the number of Saves that began, and saves that of those that succeeded.
func (s *memoryCheckpoint) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// saves is how often it was saved.
func (s *memoryCheckpoint) saves() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// requireListed requires that the first list is saved, and has saves count from there as if that
// had taken one save. It takes two where the handler acknowledges the rest of the list during the
// first.
func (s *memoryCheckpoint) requireListed(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Contains(t, []int{1, 2}, s.done)
	s.done = 1
}

// bytes are what is in it now.
func (s *memoryCheckpoint) bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.content)
}

// put replaces what is in it.
func (s *memoryCheckpoint) put(content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content = content
}

// killed is a memoryCheckpoint with what is in s now, for a process that goes on after one that used s
// was killed.
func (s *memoryCheckpoint) killed() *memoryCheckpoint { return &memoryCheckpoint{content: s.bytes()} }

// lockable is a memoryCheckpoint that only one may use at a time.
type lockable struct {
	*memoryCheckpoint
	mu     sync.Mutex
	locked bool
}

var _ informer.CheckpointLocker = &lockable{}

func (l *lockable) Lock() (func() error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locked {
		return nil, informer.ErrCheckpointInUse
	}
	l.locked = true
	return func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.locked = false
		return nil
	}, nil
}

func (l *lockable) isLocked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.locked
}

// saved is what a checkpoint says.
type saved struct {
	metadata map[string]string
	// resume is the resource version in it.
	resume   string
	versions map[string]keytable.Version
	// begun are the keys that the handler may have begun to take in, by its journal.
	begun map[string]bool
}

func readSaved(t testing.TB, content []byte) (s saved) {
	t.Helper()
	s.versions, s.begun = map[string]keytable.Version{}, map[string]bool{}
	r := checkpoint.NewReader(bytes.NewReader(content))
	for {
		key, version, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		s.versions[strings.Clone(key)] = ownVersion(version)
	}
	s.metadata = maps.Clone(r.Metadata())
	s.resume = s.metadata["resourceVersion"]
	for {
		record, key, version, err := r.NextRecord()
		if err == io.EOF {
			return s
		}
		require.NoError(t, err)
		switch record {
		case checkpoint.Acknowledged:
			s.versions[strings.Clone(key)] = ownVersion(version)
			delete(s.begun, key)
		case checkpoint.Gone:
			delete(s.versions, key)
			delete(s.begun, key)
		case checkpoint.Begun:
			s.begun[strings.Clone(key)] = true
		case checkpoint.Resume:
			s.resume = ownVersion(version).ResourceVersion
		}
	}
}

func ownVersion(b *keytable.Binary) keytable.Version {
	v := b.Version()
	return keytable.Version{ResourceVersion: strings.Clone(v.ResourceVersion), UID: types.UID(strings.Clone(string(v.UID)))}
}

// state is the resource version of every key.
func (s saved) state() map[string]string {
	state := map[string]string{}
	for key, v := range s.versions {
		state[key] = v.ResourceVersion
	}
	return state
}

// requireSaved checks that a checkpoint has everything that the server has now.
func (w *world) requireSaved(s *memoryCheckpoint) {
	w.t.Helper()
	versions, err := w.ResourceVersions(pods, "")
	require.NoError(w.t, err)
	now := readSaved(w.t, s.bytes())
	require.Equal(w.t, w.ResourceVersion(), now.resume)
	require.Equal(w.t, versions, now.state())
}

// run runs an informer until the returned stop, which waits for it to return, or the
// test ends.
func (w *world) run(i informer.ResourceVersionInformer) (stop func()) {
	stop = sync.OnceFunc(start(i.RunWithContext))
	w.t.Cleanup(stop)
	return stop
}
