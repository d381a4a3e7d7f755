package follow

import (
	"errors"
	"fmt"
	"time"

	"github.com/rvinformer/informer/mirror/internal/display"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// believed is how long a server has to refuse, or its port to be closed, before there is no sense in
// waiting: a refusal may be meant for one way of listing, and a server may be restarting.
const believed = 4 * time.Second

// Patience is for how long something that has to come may make no progress. Zero is for ever.
type Patience time.Duration

// Spent returns why there is no sense in waiting any longer, or nil. Err is what is wrong now, since
// failing, and progress is when something was achieved last.
func (p Patience) Spent(err error, failing, progress, now time.Time) error {
	limit := time.Duration(p)
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	switch {
	case limit == 0:
		return nil
	case (refused || utilnet.IsConnectionRefused(err)) && now.Sub(failing) >= believed:
		return errors.New(display.Reason(err))
	case now.Sub(progress) < limit:
		return nil
	case err != nil:
		return fmt.Errorf("no progress for %s: %s", limit, display.Reason(err))
	}
	return fmt.Errorf("no progress for %s", limit)
}
