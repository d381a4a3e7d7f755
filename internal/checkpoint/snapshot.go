package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/keytable"
)

// snapshotMagic begins a snapshot of whole objects. It differs from magic, so that neither is taken
// for the other.
const snapshotMagic = "\x89RVS\r\n\x1a\n"

// SnapshotVersion is the version of the format of snapshots, what follows the head included.
const SnapshotVersion = 1

// SnapshotHead is what stands before the objects in a snapshot.
type SnapshotHead struct {
	// Metadata has the Source, the resource version, and what else identifies the snapshot.
	Metadata map[string]string
	// Sample are the versions of some of the objects, by key.
	Sample map[string]keytable.Version
}

// Write writes the head: the magic, the version, and a checkpoint.
func (h *SnapshotHead) Write(w io.Writer) error {
	if _, err := w.Write(binary.BigEndian.AppendUint16([]byte(snapshotMagic), SnapshotVersion)); err != nil {
		return err
	}
	cw := NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(h.Metadata)) {
		if err := cw.Metadata(name, h.Metadata[name]); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(h.Sample)) {
		v := h.Sample[key].Binary()
		if err := cw.Entry(key, &v); err != nil {
			return err
		}
	}
	return cw.Close()
}

// ReadSnapshotHead reads a head, and takes no byte more. Its errors are those of a Reader.
func ReadSnapshotHead(r io.Reader) (h SnapshotHead, err error) {
	begin := make([]byte, len(snapshotMagic)+2)
	n, err := io.ReadFull(r, begin)
	begin = begin[:n]
	if text := begin[:min(n, len(snapshotMagic))]; string(text) != snapshotMagic[:len(text)] {
		return h, &api.CheckpointError{Err: notSnapshot(text)}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return h, &api.CheckpointError{Offset: int64(n), Err: err}
	}
	at := int64(len(snapshotMagic))
	switch version := binary.BigEndian.Uint16(begin[at:]); {
	case version > SnapshotVersion:
		return h, &api.CheckpointError{Offset: at, Err: fmt.Errorf("%w: snapshot of version %d, %d is the newest known", api.ErrCheckpointVersion, version, SnapshotVersion)}
	case version == 0:
		return h, &api.CheckpointError{Offset: at, Err: fmt.Errorf("%w: snapshot of version 0", api.ErrCheckpointDamaged)}
	}
	cr := NewReader(r)
	h.Sample = map[string]keytable.Version{}
	for {
		key, v, err := cr.Next()
		if err == io.EOF {
			h.Metadata = cr.Metadata()
			return h, nil
		}
		if err != nil {
			return SnapshotHead{}, damagedHead(err)
		}
		version := v.Version()
		h.Sample[strings.Clone(key)] = keytable.Version{
			ResourceVersion: strings.Clone(version.ResourceVersion), UID: types.UID(strings.Clone(string(version.UID))),
		}
	}
}

func notSnapshot(text []byte) error {
	if string(text) == magic {
		return fmt.Errorf("%w with objects, but one of an informer that keeps none", api.ErrCheckpointFormat)
	}
	return fmt.Errorf("%w with objects", api.ErrCheckpointFormat)
}

// damagedHead returns the error of a head that begins as one: whatever does not fit in it is
// damage.
func damagedHead(err error) error {
	if errors.Is(err, api.ErrCheckpointFormat) || errors.Is(err, api.ErrCheckpointVersion) {
		return fmt.Errorf("%w: the head: %v", api.ErrCheckpointDamaged, err)
	}
	return err
}
