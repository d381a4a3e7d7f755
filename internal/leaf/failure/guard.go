package failure

import (
	"context"
	"errors"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/rvinformer/informer/api"
)

// Guard calls f, code of the user's, and returns its error. A panic is a *PanicError where
// utilruntime lets the process survive it; where it does not, fail is called with it before the
// process ends.
func Guard(ctx context.Context, fail func(error), f func() error) (err error) {
	defer utilruntime.HandleCrashWithContext(ctx, func(_ context.Context, value interface{}) {
		err = &api.PanicError{Value: value}
		if utilruntime.ReallyCrash {
			fail(err)
		}
	})
	return f()
}

// IsPanic reports whether err is of a panic.
func IsPanic(err error) bool {
	var panicked *api.PanicError
	return errors.As(err, &panicked)
}
