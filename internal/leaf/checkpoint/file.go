package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/rvinformer/informer/api"
)

// File is a store that keeps a checkpoint in a file, with its journal at the end of the file.
// It is safe for concurrent use. The lock on it is a lock of the operating system on a second
// file; while nothing holds that, each Save takes it for itself.
type File struct {
	path string
	turn chan struct{} // holds a value while a Save or a Sync is under way
	tail tail

	mu sync.Mutex
	// locked says that there is a Lock whose unlock was not called yet.
	locked bool
	// users are that Lock and the Saves under way. While there are any, the lock file
	// is locked: a Save goes on beneath a Lock that begins or ends meanwhile.
	users int
	file  *flock.Flock
	// target is where the checkpoint is, links followed, while there are users.
	target string
}

// NewFile returns the store of the file at path. The file need not exist.
func NewFile(path string) *File {
	return &File{path: path, turn: make(chan struct{}, 1), tail: tail{turn: make(chan struct{}, 1)}}
}

// String returns the path.
func (c *File) String() string { return c.path }

// Load opens the file. It needs no lock.
func (c *File) Load(ctx context.Context) (io.ReadCloser, error) {
	f, err := c.open(ctx)
	if err != nil {
		return nil, err // not a typed nil
	}
	return f, nil
}

func (c *File) open(ctx context.Context) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, c.failed("load", err)
	}
	// Before it is opened: to open a pipe would wait.
	if _, err := c.resolve(); err != nil {
		return nil, c.failed("load", err)
	}
	f, err := os.Open(c.path)
	if err != nil {
		return nil, c.failed("load", err)
	}
	return f, nil
}

// Lock takes the lock until unlock is called, or the process ends. It does not wait: the error
// is api.ErrCheckpointInUse if the lock is taken, also by this File.
func (c *File) Lock() (unlock func() error, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locked {
		return nil, c.failed("lock", api.ErrCheckpointInUse)
	}
	if err := c.acquireLocked(); err != nil {
		return nil, err
	}
	c.locked = true
	var once sync.Once
	return func() (err error) {
		once.Do(func() { err = c.unlock() })
		return err
	}, nil
}

func (c *File) unlock() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.locked = false
	return c.releaseLocked()
}

// Save replaces the file by what write writes, behind which it keeps what is appended meanwhile.
// The error of write is within its own. Only an error of the step "sync of the directory" comes
// after the file was replaced.
func (c *File) Save(ctx context.Context, write func(io.Writer) error) (err error) {
	if err := ctx.Err(); err != nil {
		return c.failed("save", err)
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return c.failed("wait for another Save", ctx.Err())
	}
	defer func() { <-c.turn }()
	if err := c.acquire(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.release()) }()
	if err := c.tail.beginSave(ctx); err != nil {
		return c.failed("wait for an Append", err)
	}
	return c.replace(ctx, write)
}

// replace writes a new file aside and renames it over the old one.
func (c *File) replace(ctx context.Context, write func(io.Writer) error) (err error) {
	old, err := regular(c.target)
	if err != nil {
		return c.failed("look at the old file", err)
	}
	directory, name := filepath.Split(c.target)
	f, err := os.CreateTemp(orHere(directory), name+temporary+"*")
	if err != nil {
		return c.failed("create a temporary file", err)
	}
	renamed := false
	defer func() { // also when write panics
		if renamed {
			return
		}
		_ = f.Close() // it failed, or was closed already
		if e := os.Remove(f.Name()); e != nil {
			err = errors.Join(err, c.failed("remove the temporary file", e))
		}
	}()
	if err := c.fill(ctx, f, old, write); err != nil {
		return err
	}
	if err := c.swap(ctx, f); err != nil {
		return err
	}
	renamed = true
	if err := syncDirectory(orHere(directory)); err != nil {
		return c.failed("sync of the directory", err)
	}
	return nil
}

// swap renames f to the name of the checkpoint, and before that adds what was appended to the
// old one meanwhile.
func (c *File) swap(ctx context.Context, f *os.File) error {
	if err := c.tail.take(ctx); err != nil {
		return c.failed("wait for an Append", err)
	}
	defer c.tail.give()
	if err := c.tail.carry(f); err != nil {
		return c.failed("carry the journal over", err)
	}
	if err := errors.Join(f.Close(), c.tail.close()); err != nil {
		return c.failed("close", err)
	}
	if err := os.Rename(f.Name(), c.target); err != nil {
		return c.failed("rename", err)
	}
	return nil
}

// fill writes f. Once it returns nil, all of it is on the disk, and what was appended to the old
// file by then.
func (c *File) fill(ctx context.Context, f *os.File, old fs.FileInfo, write func(io.Writer) error) error {
	if old != nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return c.failed("set the permissions", err)
		}
	}
	w := &contextWriter{ctx: ctx, w: f}
	err := write(w)
	if err == nil {
		err = w.err // which write did not look at
	}
	if err != nil {
		return c.failed("write", err)
	}
	if err := c.tail.take(ctx); err != nil {
		return c.failed("sync", err)
	}
	err = c.tail.carry(f)
	c.tail.give()
	if err != nil {
		return c.failed("carry the journal over", err)
	}
	if err := f.Sync(); err != nil {
		return c.failed("sync", err)
	}
	if err := ctx.Err(); err != nil { // the sync may have taken long
		return c.failed("sync", err)
	}
	return nil
}

// contextWriter writes until its context ends. After an error it writes no more,
// since what follows would be in the wrong place.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (w *contextWriter) Write(b []byte) (n int, err error) {
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err == nil {
		n, w.err = w.w.Write(b)
	}
	return n, w.err
}

func (c *File) acquire() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acquireLocked()
}

func (c *File) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.releaseLocked()
}

// acquireLocked adds a user. The mutex is held while the lock file is locked, which
// does not wait: every caller that needs the mutex needs that lock.
func (c *File) acquireLocked() error {
	if c.users > 0 {
		c.users++
		return nil
	}
	target, err := c.resolve()
	if err != nil {
		return c.failed("lock", err)
	}
	file := flock.New(target + ".lock")
	locked, err := file.TryLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.failed("lock", fmt.Errorf("the directory is not there: %w", err))
	case err != nil:
		return c.failed("lock", err)
	case !locked:
		return c.failed("lock", api.ErrCheckpointInUse)
	}
	if err := removeLeftovers(target); err != nil {
		return errors.Join(c.failed("remove what another process has left", err), file.Unlock())
	}
	c.users, c.file, c.target = 1, file, target
	return nil
}

// releaseLocked takes a user away. The lock file stays. If it were removed, two
// users could hold a lock at once: one on the removed file, which it had opened
// before, and one on the next file of that name.
func (c *File) releaseLocked() error {
	if c.users--; c.users > 0 {
		return nil
	}
	// No Append is under way: it would be a user.
	if err := errors.Join(c.tail.close(), c.file.Unlock()); err != nil {
		return c.failed("unlock", err)
	}
	return nil
}

// resolve follows the links at path to where the checkpoint is, or will be: a regular
// file, or nothing.
func (c *File) resolve() (target string, err error) {
	if c.path == "" {
		return "", fmt.Errorf("the path is empty: %w", fs.ErrInvalid)
	}
	target = c.path
	for range 40 { // as many as Linux follows
		next, err := os.Readlink(target)
		if err != nil { // no link
			_, err := regular(target)
			return target, err
		}
		if !filepath.IsAbs(next) {
			// Not joined, which would drop "x/..": x may be a link too.
			directory, _ := filepath.Split(target)
			next = directory + next
		}
		target = next
	}
	return "", fmt.Errorf("too many symbolic links: %w", fs.ErrInvalid)
}

// regular looks at a file. It is nil where there is none, and an error where there is
// something else.
func regular(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file but %v: %w", path, info.Mode(), fs.ErrInvalid)
	}
	return info, nil
}

func (c *File) failed(step string, err error) error {
	return fmt.Errorf("checkpoint %s: %s: %w", c.path, step, err)
}

// temporary is what the names of temporary files have behind that of the checkpoint.
const temporary = ".tmp-"

// removeLeftovers removes the temporary files of processes that were killed. The caller
// holds the lock, so that none of them is being written.
func removeLeftovers(target string) error {
	directory, name := filepath.Split(target)
	entries, err := os.ReadDir(orHere(directory))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name+temporary) || !e.Type().IsRegular() {
			continue
		}
		if err := os.Remove(directory + e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncDirectory makes a rename survive a crash. Windows cannot sync a directory, and some
// file systems neither can nor need to.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// orHere is a directory as filepath.Split has it, where none is the current one.
func orHere(directory string) string {
	if directory == "" {
		return "."
	}
	return directory
}
