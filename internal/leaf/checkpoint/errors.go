package checkpoint

import "errors"

// ErrTooLong says, within an *api.CheckpointError, that a string is longer than the format has room
// for.
var ErrTooLong = errors.New("too long")
