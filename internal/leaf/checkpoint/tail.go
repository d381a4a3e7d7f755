package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// tail is the end of a File, where a journal is appended.
type tail struct {
	// turn holds a value while the tail is in use.
	turn chan struct{}
	// file is nil until something is appended. Size is that of it.
	file *os.File
	size int64
	// carried is how much of the file a Save under way replaces, or has copied behind the new
	// checkpoint already; -1 if that is all of it as it is when the file is opened.
	carried int64
}

// Append writes b to the end of the file. It may be called during a Save.
func (c *File) Append(ctx context.Context, b []byte) (err error) {
	if err := c.tail.take(ctx); err != nil {
		return c.failed("wait for another Append", err)
	}
	defer c.tail.give()
	if err := c.acquire(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.release()) }()
	if err := c.tail.open(c.target); err != nil {
		return c.failed("append", err)
	}
	if err := c.tail.append(b); err != nil {
		return c.failed("append", err)
	}
	return nil
}

// Sync makes what was appended survive a crash of the machine. It takes turns with Save, which
// would replace the file that it syncs.
func (c *File) Sync(ctx context.Context) (err error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return c.failed("wait for another Save", ctx.Err())
	}
	defer func() { <-c.turn }()
	if err := c.acquire(); err != nil { // so that the file stays open
		return err
	}
	defer func() { err = errors.Join(err, c.release()) }()
	if err := c.tail.take(ctx); err != nil {
		return c.failed("wait for an Append", err)
	}
	file := c.tail.file
	c.tail.give()
	if file == nil { // nothing was appended since it was saved
		return nil
	}
	if err := file.Sync(); err != nil {
		return c.failed("sync", err)
	}
	return nil
}

func (t *tail) take(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *tail) give() { <-t.turn }

// open opens the file, if it is not open.
func (t *tail) open(path string) error {
	if t.file != nil {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	t.file, t.size = file, info.Size()
	if t.carried < 0 {
		t.carried = t.size
	}
	return nil
}

// append writes b, all of it or, if the file can be cut again, nothing.
func (t *tail) append(b []byte) error {
	n, err := t.file.Write(b)
	if err == nil {
		t.size += int64(n)
		return nil
	}
	if e := t.file.Truncate(t.size); e != nil {
		t.size += int64(n)
		err = fmt.Errorf("%w; and cut off again: %w", err, e)
	}
	return err
}

func (t *tail) close() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}

// beginSave notes that what is appended from now on is to be carried over.
func (t *tail) beginSave(ctx context.Context) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	defer t.give()
	t.carried = -1
	if t.file != nil {
		t.carried = t.size
	}
	return nil
}

// carry copies to w what was appended since beginSave, from where the last carry has ended.
func (t *tail) carry(w io.Writer) error {
	if t.file == nil { // nothing was
		return nil
	}
	n, err := io.Copy(w, io.NewSectionReader(t.file, t.carried, t.size-t.carried))
	t.carried += n
	return err
}
