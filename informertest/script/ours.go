package script

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
)

var listModes = map[string]informer.ListMode{
	"auto": informer.ListModeAuto, "paged": informer.ListModePaged, "full": informer.ListModeFull, "watch-list": informer.ListModeWatchList,
}

func example(decode string) runtime.Object {
	switch decode {
	case "raw":
		return &informer.RawObject{}
	case "metadata":
		return &metav1.PartialObjectMetadata{}
	case "typed":
		return &corev1.Pod{}
	}
	return &unstructured.Unstructured{}
}

// Ours makes a ResourceVersionInformer. A script with handlers that panic needs
// utilruntime.ReallyCrash to be false.
func Ours(s Setup) (*Subject, error) {
	config, err := s.config()
	if err != nil {
		return nil, err
	}
	i := informer.NewResourceVersionInformer("script", config)
	return s.subject(func() follower { return i }, i.RunWithContext, config.Budget), nil
}

// config is what the script wants, for an informer of this module.
func (s Setup) config() (informer.InformerConfig, error) {
	if s.Media == "protobuf" {
		s.Client.ContentType = runtime.ContentTypeProtobuf
		s.Client.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	factory, err := informer.NewDynamicListerWatcherFactory(s.Client)
	if err != nil {
		return informer.InformerConfig{}, err
	}
	config := informer.InformerConfig{
		ListerWatcher:      factory.ForResource("", s.Resource),
		Storage:            s.Storage,
		Shard:              s.Shard,
		ExampleObject:      example(s.Decode),
		ListMode:           listModes[s.List],
		WatchListPageSize:  int64(s.Page),
		Workers:            s.Workers,
		MaxBatch:           s.Batch,
		MaxAttempts:        s.Attempts,
		Checkpoint:         s.Checkpoint,
		CheckpointInterval: s.Interval,
		CheckpointChanges:  s.Changes,
		StallTimeout:       s.Stall,
		ErrorHandler: func(_ *informer.Reflector, err error) {
			if err != nil {
				s.Failed(err)
			}
			if key, ok := passedOver(err); ok {
				s.GaveUp(key)
			}
		},
	}
	budget := informer.NewBudget(16 << 20)
	if s.Budget > 0 {
		budget = informer.NewBudget(int64(s.Budget))
	}
	config.Budget = budget
	switch {
	case s.Batch > 0 && s.IgnoreSynced:
		config.BatchHandler = informer.IgnoreSynced(s.comparing())
	case s.Batch > 0:
		config.BatchHandler = s.comparing()
	case s.IgnoreSynced:
		config.Handler = informer.ResourceEventHandlerDetailedFuncs{
			AddFunc: s.Handler.OnAdd, UpdateFunc: s.Handler.OnUpdate, DeleteFunc: s.Handler.OnDelete,
		}
	default:
		config.Handler = s.Handler
	}
	return config, nil
}

// follower is an informer, or one handler of a shared one.
type follower interface {
	HasSynced() bool
	Status() informer.Status
	LastSyncResourceVersion() string
	Audit(ctx context.Context, opts informer.AuditOptions) (informer.AuditReport, error)
	Redeliver(ctx context.Context, opts informer.RedeliverOptions) error
}

// subject is an informer of this module, or what follows for it now, that is put to a script.
func (s Setup) subject(now func() follower, run func(context.Context), budget *informer.Budget) *Subject {
	fresh := s.NewProcess
	return &Subject{
		Run:       run,
		HasSynced: func() bool { return now().HasSynced() },
		Origin: func() (oracle.Run, error) {
			run := oracle.Run{Known: maps.Collect(s.Storage.All()), Begun: map[string]bool{}, IgnoresSynced: s.IgnoreSynced, Shard: s.Shard}
			first := fresh
			fresh = false
			switch {
			case s.Checkpoint == nil && first && len(run.Known) == 0:
				run.Known = nil // from nothing; later, the handler may know what the storage does not
				return run, nil
			case s.Checkpoint == nil:
				return run, nil
			}
			// Into a storage that has something, nothing is loaded, nor by an informer that has
			// run.
			empty := len(run.Known) == 0 && now().Status().ResourceVersion == ""
			err := addCheckpoint(&run, s.Checkpoint, empty)
			// A run of an informer that has run before goes on from what that has acknowledged.
			if run.Resumed == "" && !s.Unread() {
				run.Resumed = now().Status().ResourceVersion
			}
			return run, err
		},
		ResourceVersion: func() string { return now().Status().ResourceVersion },
		Stored:          func() map[string]string { return maps.Collect(s.Storage.All()) },
		Memory:          func() (int64, int64) { return budget.InUse(), budget.Limit() },
		Waiting:         func() int { return now().Status().Queued },
		Audit: func(ctx context.Context, opts informer.AuditOptions) (informer.AuditReport, error) {
			return now().Audit(ctx, opts)
		},
		Redeliver: func(ctx context.Context, opts informer.RedeliverOptions) error { return now().Redeliver(ctx, opts) },
		Idle: func(complete bool) error {
			i := now()
			return errors.Join(s.idle(i.Status(), s.Storage.Len()), s.whole(complete, i.Status(), i.LastSyncResourceVersion()))
		},
	}
}

// comparing is the BatchHandler that says what is stored before it is told.
func (s Setup) comparing() informer.BatchHandler {
	return informer.BatchHandlerFunc(func(ctx context.Context, events []informer.Event) error {
		for _, e := range events {
			version, _, _ := s.Storage.GetByKey(e.Key)
			stored, _ := version.(string)
			s.Stored(e.Key, stored)
		}
		return s.BatchHandler.OnBatch(ctx, events)
	})
}

// idle is what is wrong with a status while all is quiet.
func (s Setup) idle(is informer.Status, stored int) error {
	switch {
	case !is.Synced:
		return fmt.Errorf("it is not synced: %s, %s", is.Condition.Reason, is.Condition.Message)
	case is.Phase != informer.PhaseWatching && tellsAll(s.Dialect):
		return fmt.Errorf("its phase is %v", is.Phase)
	case is.Queued != 0 || is.QueuedBytes != 0:
		return fmt.Errorf("it has %d keys and %d bytes queued", is.Queued, is.QueuedBytes)
	case is.Redelivery != nil:
		return fmt.Errorf("it still delivers again: %+v", *is.Redelivery)
	case is.Objects != stored:
		return fmt.Errorf("it counts %d objects, %d are stored", is.Objects, stored)
	}
	return nil
}

// whole is what else is wrong with it where all was taken in.
func (s Setup) whole(complete bool, is informer.Status, lastSync string) error {
	switch {
	case !complete:
		return nil
	case is.LastError != nil && tellsAll(s.Dialect): // else a watch may end with an error each time
		return fmt.Errorf("its last error is %w", is.LastError)
	case is.ResourceVersion == "" && tellsAll(s.Dialect):
		return errors.New("it has no resource version")
	case is.ResourceVersion != lastSync:
		return fmt.Errorf("its resource version is %s, and that of its last sync %s", is.ResourceVersion, lastSync)
	}
	return nil
}

// passedOver is the key of an event that an informer has given up.
func passedOver(err error) (string, bool) {
	if !errors.Is(err, informer.ErrPassedOver) {
		return "", false
	}
	if process, ok := errors.AsType[*informer.ProcessError](err); ok {
		return process.Key, true
	}
	if batch, ok := errors.AsType[*informer.BatchError](err); ok && len(batch.Keys) == 1 {
		return batch.Keys[0], true
	}
	return "", false
}

// addCheckpoint adds to a run the version of a checkpoint, and, if it is loaded, what is known.
func addCheckpoint(run *oracle.Run, store informer.CheckpointStore, load bool) error {
	content, err := store.Load(context.Background())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer content.Close()
	saved, err := readCheckpoint(content)
	if err != nil {
		return err
	}
	if load {
		run.Known = saved.State()
		for key := range saved.Begun {
			if _, known := run.Known[key]; known {
				run.Begun[key] = true
			} else {
				run.Known[key] = ""
			}
		}
	}
	run.Resumed, run.Dead = saved.Resume, map[string]bool{}
	for key := range saved.Dead {
		run.Dead[key] = true
	}
	_, run.Journaled = store.(informer.CheckpointAppender)
	of, err := shardOfCheckpoint(saved)
	if err == nil && of != run.Shard {
		takeFrom(run, of)
	}
	return err
}

// takeFrom leaves of a run what it has of the checkpoint of another shard. It lists if the other
// one does not have all of its own. It does not take what the handler had only begun with and what
// may not be in its shard. It lists too if the other one has dead letters.
func takeFrom(run *oracle.Run, saved informer.Shard) {
	if !saved.Contains(run.Shard) || len(run.Dead) > 0 {
		run.Resumed = ""
	}
	if run.Shard.Contains(saved) {
		return
	}
	if run.Shard.Key == informer.ShardByUID {
		run.Journaled = false
		maps.DeleteFunc(run.Known, func(_, version string) bool { return version == "" })
	}
}
