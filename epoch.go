package informer

import "context"

// epochKey is the key of an epoch in a context.
type epochKey struct{}

// WithEpoch returns a context with an epoch, to run an informer with. The epoch says which owner of
// the informer's work this is, where owners follow each other: each has a larger one than the owner
// before, and no two have the same. The informer passes it on, in the context of each call of a
// handler that has one, and in each Event. A sink stores the epoch of a new owner, and refuses
// writes with another one, because they come from an owner that does not know yet that it is none
// any more. Package fleet/shards gives epochs out.
func WithEpoch(ctx context.Context, epoch int64) context.Context {
	return context.WithValue(ctx, epochKey{}, epoch)
}

// EpochOf returns the epoch of a context; false if it has none.
func EpochOf(ctx context.Context) (epoch int64, ok bool) {
	epoch, ok = ctx.Value(epochKey{}).(int64)
	return epoch, ok
}
