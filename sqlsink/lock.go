package sqlsink

import (
	"fmt"
	"sync"

	"github.com/rvinformer/informer"
)

var _ informer.CheckpointLocker = checkpoint{}

// users has the places that informers of this process use, in any version.
type users struct{ places sync.Map }

// Lock makes an informer the only one that writes to the place, until unlock. A second one would delete
// the rows of the first, if it follows another namespace or other selectors. Other processes are told from
// each other by the database.
func (c checkpoint) Lock() (unlock func() error, err error) {
	places, at := &c.sink.users.places, [4]any(checkpointArguments(c.at))
	if _, used := places.LoadOrStore(at, true); used {
		return nil, fmt.Errorf("%w: another informer writes to %s, and a place has one, of one namespace and selector", informer.ErrCheckpointInUse, c)
	}
	release := sync.OnceFunc(func() { places.Delete(at) })
	return func() error {
		release()
		return nil
	}, nil
}
