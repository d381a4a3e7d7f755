package checkpoint

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Journal makes frames of records. A frame is what is appended at once: a reader takes all of
// its records or none. The zero value is ready for use.
type Journal struct {
	// buffer has frames. The last one begins at frameAt and has no end yet if open is set.
	buffer  []byte
	frameAt int
	open    bool
	last    []byte
}

// Add adds a record. Strings of more than MaxString are not to be given.
func (j *Journal) Add(record Record, key string, version *keytable.Binary) {
	if !j.open {
		j.open, j.frameAt, j.last = true, len(j.buffer), j.last[:0]
		j.buffer = append(j.buffer, blockFrame, 0, 0, 0, 0)
	}
	j.buffer = appendEntry(j.buffer, j.last, record, key, version)
	j.last = appendLast(j.last, key)
	if len(j.buffer)-j.frameAt >= blockFull {
		j.finish()
	}
}

// Take returns the frames of the records that were added, and begins anew in the memory of next.
func (j *Journal) Take(next []byte) []byte {
	j.finish()
	frames := j.buffer
	j.buffer = next[:0]
	return frames
}

// finish ends the frame that was begun.
func (j *Journal) finish() {
	if !j.open {
		return
	}
	j.open = false
	binary.BigEndian.PutUint32(j.buffer[j.frameAt+1:], uint32(len(j.buffer)-j.frameAt-blockHead))
	j.buffer = binary.BigEndian.AppendUint32(j.buffer, crc32.Checksum(j.buffer[j.frameAt:], castagnoli))
}
