package shards

import (
	"context"
	"errors"
	"fmt"
)

// ErrStaleEpoch says that a sink has refused a write, because it has stored another epoch for the
// unit. Errors of StaleEpoch wrap it.
var ErrStaleEpoch = errors.New("the epoch is stale: the unit has had another owner since")

// staleKey is the key of the function that StaleEpoch calls.
type staleKey struct{}

// StaleEpoch reports that a sink has refused a write or a claim under ctx, because it has stored
// another epoch for the unit. It returns the error for the handler to return. ctx is that of
// RunUnit or one derived from it, as a BatchHandler gets it.
//
// The replica reads the Lease of the unit. If it is not the owner any more, it ends the unit. If it
// is, the Lease was lost and made anew, or the sink has lost its last transactions. Then the
// replica starts the unit again, with an epoch above stored and above its own.
func StaleEpoch(ctx context.Context, stored int64) error {
	if report, ok := ctx.Value(staleKey{}).(func(stored int64)); ok {
		report(stored)
	}
	return fmt.Errorf("%w (%d is stored)", ErrStaleEpoch, stored)
}
