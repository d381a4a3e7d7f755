package informer

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/prune"
)

// checkedConfig is a configuration that can work, with its defaults.
type checkedConfig struct {
	InformerConfig
	// taken is the type of the objects that the Handler takes.
	taken object.Taken
	// fields are those that stay of each object.
	fields *prune.Fields
}

// mustCheck is check for an informer of a name. It panics instead of returning an error.
func (c InformerConfig) mustCheck(name string) checkedConfig {
	checked, err := c.check()
	switch {
	case name == "":
		panic("name is required")
	case err != nil:
		panic(fmt.Sprintf("informer %q: %v", name, err))
	}
	return checked
}

// check returns the configuration with its defaults. The error says why it cannot work.
func (c InformerConfig) check() (checked checkedConfig, err error) {
	switch {
	case c.ListerWatcher == nil:
		return checked, errors.New("ListerWatcher is required")
	case c.Handler == nil && c.BatchHandler == nil:
		return checked, fmt.Errorf("%s or %s is required", "Handler", "BatchHandler")
	case c.Handler != nil && c.BatchHandler != nil:
		return checked, fmt.Errorf("%s and %s exclude each other", "Handler", "BatchHandler")
	}
	if err := cmp.Or(c.Shard.Validate(), c.checkNumbers()); err != nil {
		return checked, err
	}
	if c.ListerWatcher, c.Shard, err = undivided(c.ListerWatcher, c.Shard); err != nil {
		return checked, err
	}
	wire := server.Of(c.ListerWatcher) != nil
	switch {
	case c.AuditEvery > 0 && !wire:
		return checked, fmt.Errorf("AuditEvery needs a ListerWatcher of a DynamicListerWatcherFactory, not a %T", c.ListerWatcher)
	case c.ListMode < ListModeAuto || c.ListMode > ListModeWatchList:
		return checked, fmt.Errorf("unknown ListMode %d", c.ListMode)
	}
	taken := takenBy(c.Handler)
	example, mistyped := taken.Example(c.ExampleObject, c.Transform != nil)
	fields, err := prune.Parse(c.Keep, c.Prune)
	if err == nil {
		err = object.Expect(example, "", publicRaw).CheckFields(fields)
	}
	if err := cmp.Or(err, mistyped); err != nil {
		return checked, err
	}
	if _, raw := example.(*RawObject); raw && !wire {
		return checked, fmt.Errorf("a RawObject needs a ListerWatcher of a DynamicListerWatcherFactory, not a %T", c.ListerWatcher)
	}
	c.ExampleObject = example
	return checkedConfig{c.withDefaults(), taken, fields}, nil
}

// undivided is server.Undivided where a shard may be configured too. The error says that there are
// two of them.
func undivided(lw cache.ListerWatcher, shard Shard) (cache.ListerWatcher, Shard, error) {
	inner, of := server.Undivided(lw)
	switch {
	case of.IsAll():
		return inner, shard, nil
	case shard.IsAll() || shard == of:
		return inner, of, nil
	}
	return lw, shard, fmt.Errorf("Shard is %v, and the ListerWatcher divides its objects by %v", shard, of)
}

func (c InformerConfig) checkNumbers() error {
	return cmp.Or(
		notNegative("MaxBatch", c.MaxBatch),
		notNegative("MaxAttempts", c.MaxAttempts),
		notNegative("MaxDeadLetters", c.MaxDeadLetters),
		notNegative("Workers", c.Workers),
		notNegative("CheckpointInterval", c.CheckpointInterval),
		notNegative("MinWatchTimeout", c.MinWatchTimeout),
		notNegative("MaxInternalErrorRetryDuration", c.MaxInternalErrorRetryDuration),
		notNegative("StallTimeout", c.StallTimeout),
		notNegative("AuditEvery", c.AuditEvery),
		notNegative("CheckpointChanges", c.CheckpointChanges),
		notNegative("WatchListPageSize", c.WatchListPageSize),
	)
}

func notNegative[T cmp.Ordered](field string, value T) error {
	var zero T
	if value < zero {
		return fmt.Errorf("%s is %v", field, value)
	}
	return nil
}

func (c InformerConfig) withDefaults() InformerConfig {
	if c.Storage == nil {
		c.Storage = NewResourceVersionStorage()
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = defaultMaxBatch
	}
	if c.MaxDeadLetters == 0 {
		c.MaxDeadLetters = defaultMaxDeadLetters
	}
	if c.ForcePaginatedList {
		c.ListMode = ListModePaged
	}
	if c.Shard.IsAll() {
		c.Shard = Shard{} // whatever its Key
	}
	c.Budget = c.Budget.orDefault()
	return c
}
