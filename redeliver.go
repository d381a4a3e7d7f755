package informer

import (
	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/source"
)

// ErrRedelivering: another redelivery of the same informer is under way.
var ErrRedelivering = api.ErrRedelivering

// The options and the progress of Redeliver. Package api has their fields.
type (
	// RedeliverOptions say which objects are delivered again, and how fast.
	RedeliverOptions = api.RedeliverOptions
	// RedeliveryStatus is how far a redelivery has come.
	RedeliveryStatus = api.RedeliveryStatus
)

// objects returns the followed objects that a label selector selects.
func (r *Reflector) objects(selector string) (*source.Objects, error) {
	return r.setup.Objects(selector, r.tuning())
}
