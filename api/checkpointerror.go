package api

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrCheckpointInUse says that another informer, of this process or of another one, uses a
	// checkpoint that only one informer may use at a time.
	ErrCheckpointInUse = errors.New("checkpoint in use")
	// ErrCheckpointSource says that a checkpoint is of other objects than those that an informer is
	// to follow. It is wrapped by a *CheckpointSourceError.
	ErrCheckpointSource = errors.New("checkpoint of another source")
)

// The reasons in a *CheckpointError. A checkpoint that was cut has the reason io.ErrUnexpectedEOF.
var (
	// ErrCheckpointFormat says that the bytes are not a checkpoint: they do not begin like one.
	ErrCheckpointFormat = errors.New("not a checkpoint")
	// ErrCheckpointVersion says that a newer version of this library wrote the checkpoint, in a
	// format that this version does not know.
	ErrCheckpointVersion = errors.New("format is too new")
	// ErrCheckpointDamaged says that the checkpoint is not what was written: its checksum is wrong,
	// or something before it has no meaning.
	ErrCheckpointDamaged = errors.New("damaged")
)

// CheckpointError says that a checkpoint could not be read, or that an entry cannot be written. The
// storage is unchanged.
type CheckpointError struct {
	// Offset is the byte of the checkpoint where the error was found. In a damaged checkpoint the
	// damage may begin earlier.
	Offset int64
	// Entry is the number of entries before it.
	Entry int
	// Err is the reason, which is one of the errors above or that of the reader.
	Err error
}

func (e *CheckpointError) Error() string {
	return fmt.Sprintf("checkpoint: %v at byte %d, after %d entries", e.Err, e.Offset, e.Entry)
}

// Unwrap returns what is wrong.
func (e *CheckpointError) Unwrap() error { return e.Err }

// CheckpointSourceError says how the source of a checkpoint differs from that of the informer.
// Resource versions of one source mean nothing in another: changed objects would be taken for
// unchanged ones, and objects that another selector leaves out for deleted ones.
type CheckpointSourceError struct {
	// Differences has at least one element.
	Differences []CheckpointSourceDifference
}

// CheckpointSourceDifference is one field that differs between two sources.
type CheckpointSourceDifference struct {
	// Field is "server" (the URL), "resource" ("apps/v1/deployments" or "v1/pods"), "namespace",
	// "labelSelector", "fieldSelector", "shard" or "cluster" (the UID of the namespace kube-system
	// or, if that cannot be read, an object that identifies the cluster).
	Field string
	// Saved is the value in the checkpoint. It is empty for "all", or if it is not known.
	Saved string
	// Wanted is the same for the informer.
	Wanted string
}

func (e *CheckpointSourceError) Error() string {
	var differences []string
	for _, d := range e.Differences {
		differences = append(differences, fmt.Sprintf("%s is %q, not %q", d.Field, d.Saved, d.Wanted))
	}
	return fmt.Sprintf("%v: %s", ErrCheckpointSource, strings.Join(differences, ", "))
}

// Unwrap returns ErrCheckpointSource.
func (e *CheckpointSourceError) Unwrap() error { return ErrCheckpointSource }
