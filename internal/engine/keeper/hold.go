package keeper

import "github.com/rvinformer/informer/internal/leaf/failure"

// phase is how far a run has come with its store.
type phase int

const (
	// away: no run is under way, or the store is another informer's: locked, or with content that
	// is not this informer's to replace.
	away phase = iota
	// locked: the store is locked, and its content was not read.
	locked
	// owns: the content of the store is known, and may be replaced.
	owns
)

// hold is what a Keeper has of its store.
type hold struct {
	phase phase
	// loaded tells that the content of the store was read, in this run or in one before.
	loaded bool
	// unlock gives the lock of the store back, nil while there is none.
	unlock func() error
}

// lock locks the store, if it can be locked and is not.
func (h *hold) lock(store Store) error {
	locker, ok := store.(Locker)
	if !ok || h.unlock != nil {
		return nil
	}
	unlock, err := locker.Lock()
	if err != nil {
		return failure.OfStore("CheckpointStore.Lock", "", err)
	}
	h.unlock = unlock
	return nil
}

// release gives the lock back.
func (h *hold) release() error {
	if h.unlock == nil {
		return nil
	}
	err := h.unlock()
	h.unlock = nil
	return failure.OfStore("CheckpointStore.Unlock", "", err)
}
