package report

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// Overseer is told what else would be logged of each informer whose context it is in: it logs for
// many of them at once. Its methods are called from any goroutine.
type Overseer interface {
	// HeldUp says that a subject is held up since a moment, in place of any reason before.
	HeldUp(subject, reason, message string, since time.Time)
	// GoesOn says that a subject is not held up since a moment, or has ended.
	GoesOn(subject string, since time.Time)
	// Synced says that an informer is synced. Its HasSynced tells so an instant later at the latest.
	Synced()
}

type overseerKey struct{}

// WithOverseer returns a context whose informers tell o. Their own lines go to overseenVerbosity.
func WithOverseer(ctx context.Context, o Overseer) context.Context {
	return context.WithValue(ctx, overseerKey{}, o)
}

// OverseerOf returns the Overseer of a context, nil if there is none.
func OverseerOf(ctx context.Context) Overseer {
	o, _ := ctx.Value(overseerKey{}).(Overseer)
	return o
}

// overseenVerbosity is that of lines that an Overseer is told, too.
const overseenVerbosity = 2

// LogBegin logs that something is held up, at the verbosity that ctx asks for.
func LogBegin(ctx context.Context, message string, values ...any) {
	if logger := klog.FromContext(ctx).WithCallDepth(1); OverseerOf(ctx) == nil {
		logger.Error(nil, message, values...)
	} else {
		logger.V(overseenVerbosity).Info(message, values...)
	}
}

// LogInfo logs anything else about it.
func LogInfo(ctx context.Context, message string, values ...any) {
	logger := klog.FromContext(ctx).WithCallDepth(1)
	if OverseerOf(ctx) != nil {
		logger = logger.V(overseenVerbosity)
	}
	logger.Info(message, values...)
}
