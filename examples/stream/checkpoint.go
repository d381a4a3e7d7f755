package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// partSize is less than a NATS server takes in a message.
const partSize = 512 << 10

// head is the value that makes the parts of a checkpoint one.
type head struct {
	slot   int    // 0 or 1: a save leaves the parts of the last one as they are
	parts  int    // their number
	stored uint64 // the sequence up to which the checkpoint has all deletions
}

func (h head) part(i int) string { return fmt.Sprintf("slot%d.part%d", h.slot, i) }

func (s *Sink) head(ctx context.Context) (h head, err error) {
	entry, err := s.bucket.Get(ctx, "head")
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return h, nil
	}
	if err == nil {
		_, err = fmt.Sscan(string(entry.Value()), &h.slot, &h.parts, &h.stored)
	}
	return h, err
}

// Load reads the last checkpoint. Without objects in the stream there is nothing to go on from.
func (s *Sink) Load(ctx context.Context) (io.ReadCloser, error) {
	h, err := s.head(ctx)
	if err == nil && (h.parts == 0 || s.Known.Len() == 0) {
		err = fs.ErrNotExist
	}
	var whole bytes.Buffer
	for i := 0; i < h.parts && err == nil; i++ {
		var part jetstream.KeyValueEntry
		if part, err = s.bucket.Get(ctx, h.part(i)); err == nil {
			whole.Write(part.Value())
		}
	}
	return io.NopCloser(&whole), err
}

// Save writes the parts first, and then the head, so that a checkpoint is kept as a whole or not.
func (s *Sink) Save(ctx context.Context, write func(io.Writer) error) error {
	stored := s.stored.Load() // before write: the checkpoint may have more, but not less
	last, err := s.head(ctx)
	if err != nil {
		return err
	}
	next, whole := head{slot: 1 - last.slot, stored: stored}, bytes.Buffer{}
	if err := write(&whole); err != nil {
		return err
	}
	for part := range slices.Chunk(whole.Bytes(), partSize) {
		if _, err := s.bucket.Put(ctx, next.part(next.parts), part); err != nil {
			return err
		}
		next.parts++
	}
	_, err = s.bucket.PutString(ctx, "head", fmt.Sprint(next.slot, next.parts, next.stored))
	return err
}
