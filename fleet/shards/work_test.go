package shards_test

import (
	"github.com/rvinformer/informer/fleet"
	"github.com/rvinformer/informer/fleet/shards"
)

var _ shards.Work = (*fleet.Fleet)(nil)
