package informer

import (
	"context"
	"io"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// Why a checkpoint cannot be used.
var (
	// ErrCheckpointInUse says that another informer, of this process or of another one, uses a
	// checkpoint that only one informer may use at a time.
	ErrCheckpointInUse = api.ErrCheckpointInUse
	// ErrCheckpointSource says, within a *CheckpointSourceError, that a checkpoint is of other
	// objects than those that an informer is to follow.
	ErrCheckpointSource = api.ErrCheckpointSource
	// ErrCheckpointFormat says, within a *CheckpointError, that the bytes are not a checkpoint.
	ErrCheckpointFormat = api.ErrCheckpointFormat
	// ErrCheckpointVersion says, within a *CheckpointError, that a newer version of this library
	// wrote the checkpoint.
	ErrCheckpointVersion = api.ErrCheckpointVersion
	// ErrCheckpointDamaged says, within a *CheckpointError, that the checkpoint is not what was
	// written. One that was cut has the reason io.ErrUnexpectedEOF.
	ErrCheckpointDamaged = api.ErrCheckpointDamaged
)

// The errors of checkpoints. Package api has their fields.
type (
	// CheckpointError says that a checkpoint could not be read, or that an entry cannot be written.
	CheckpointError = api.CheckpointError
	// CheckpointSourceError says how the source of a checkpoint differs from that of the informer.
	CheckpointSourceError = api.CheckpointSourceError
	// CheckpointSourceDifference is one field that differs between two sources.
	CheckpointSourceDifference = api.CheckpointSourceDifference
)

// CheckpointStore is where a checkpoint is kept: one sequence of bytes, which is replaced as a
// whole. FileCheckpoint keeps it in a file. A store need not understand the bytes.
//
// A store that two informers could open at the same time should be a CheckpointLocker too.
//
// # How an informer uses it
//
// An informer that has loaded a checkpoint watches from the resource version up to which
// everything was acknowledged. Its handler gets what has happened since, and again what it got
// after the checkpoint was saved. HasSynced is true when the server has accepted that version.
//
// The informer lists instead, and delivers what differs, deletions included, where
//
//   - the server no longer has that version (410), or does not have it yet because it was
//     restored from a backup;
//   - an object could not be read;
//   - versions are no numbers and the process has crashed, because it is then not known what
//     was delivered already.
//
// If the store is a CheckpointAppender, as a FileCheckpoint is, no crash of the process loses a
// deletion. With any other store, a crash loses the deletion of an object that was first
// delivered after the checkpoint was saved, if the object is gone when the informer has to list.
//
// A Run that follows another one of the same informer goes on from what the informer knows. If
// another process has written to the store meanwhile, the Run goes on from what that has saved,
// unless the program has changed the Storage since.
//
// A checkpoint belongs to the data that the handler keeps: restore or drop the two together. A
// handler that keeps resource versions with its data can be protected better, by a Storage that
// is filled from them before Run. That Storage stays as it is, and the checkpoint gives only its
// resource version. It does so if each object of the checkpoint is in the Storage, in the same
// version or a newer one, and all others there are newer than the checkpoint. Otherwise the
// informer lists. A handler that has nothing fills the Storage with an empty map.
//
// # When it is not used
//
// A damaged checkpoint is reported, as a *CheckpointError, and replaced.
//
// Three others stay as they are, unlocked, and Run waits until there is another one in their place:
// one of another source (server, resource, namespace, selectors, shard, UID of the namespace
// kube-system), ErrCheckpointSource; one of a newer version of the library, ErrCheckpointVersion;
// and bytes that are no checkpoint, ErrCheckpointFormat. Nothing is listed or delivered meanwhile,
// because the handler's data may belong to what the checkpoint is of. The server is asked again
// which cluster it is of, twice a minute. With InformerConfig.BeginAnew, they are replaced instead.
//
// Run also waits for a store that another informer has locked, ErrCheckpointInUse, and for one that
// cannot be locked or read. While it waits, Status.LastError has the reason, an
// *UnusedCheckpointError. So the successor in a rolling update begins where its predecessor has
// stopped, at most two seconds later, and no deletion is missed because a checkpoint could not be
// read. A save that fails is reported in the same way, and tried again while the informer runs on.
// The save at the end of Run is given up after 30 seconds.
//
// Status.CheckpointError says why a checkpoint is not in use, for as long as that is so, and
// Status.ResumedFrom where a Run went on. A store with a method String is named by it.
//
// # How a cluster is recognized
//
// Run asks the server of a DynamicListerWatcherFactory for the namespace kube-system, to know which
// cluster it is and whether it was restored. If that is forbidden or not answered, Run compares the
// UIDs of up to three known objects, each with a list of one object. An object that is older than
// the checkpoint and is not in it shows another cluster, and Run waits. If the checkpoint has no
// resource version, one that is older than the known object of its name does. If no known object is
// left, Run lists. The source of any other ListerWatcher is not known. An ExtraStore does not get
// what was not read.
//
// A checkpoint is of one resource, in one version and one shard. A store that has none of the
// informer's, and whose handler has data of the cluster, can return one that names the cluster alone:
// docs/checkpoint-format.md has it.
type CheckpointStore interface {
	// Load returns the bytes that the last Save has written. Without any, the error
	// is fs.ErrNotExist (by errors.Is), and an informer starts with nothing. The
	// caller closes the reader, and may Save before it has. Ctx is for all of the
	// reading: a store may fail a Read once it has ended. An error that wraps
	// io.ErrUnexpectedEOF means that the checkpoint was cut, and the informer lists; a store
	// whose connection may break like that returns another error, and is asked again.
	Load(ctx context.Context) (io.ReadCloser, error)
	// Save calls write once, or not at all if that is of no use, and keeps the bytes that
	// it writes in place of the former ones. It is all or nothing: if write returns an error
	// or panics, or if ctx or the process ends meanwhile, the former bytes stay. After an
	// error of the store itself it may keep either, but as a whole.
	// The error of write is within that of Save (by errors.Is).
	//
	// The writer is write's until it returns. Its errors are to be returned by write.
	// Write runs in the goroutine of Save, and takes its time: pieces of 64 KiB are
	// usual, and may come slowly.
	Save(ctx context.Context, write func(io.Writer) error) error
}

// CheckpointAppender is a CheckpointStore that also takes what changes between two Saves, in
// small pieces. An informer writes a journal with it: what is about to be delivered before the
// handler is called, and what was acknowledged. So a process that is killed at any moment leaves
// all that its handler may know, and the deletion of an object is delivered later even if its
// addition was delivered the moment before. A save is then a few bytes, and the whole checkpoint
// is saved only when the journal has become as large as that, or 256 KiB.
type CheckpointAppender interface {
	// Append keeps b behind what is kept, so that Load returns it too. Once it has returned
	// nil, b survives the end of the process, however it ends. It may be called while Save
	// runs, also by write itself: then b is behind what was kept before, and behind what Save
	// keeps. Save replaces what was appended before it was called.
	//
	// After an error, a part of b may be kept. The informer then appends nothing more before
	// the next Save has returned nil, nor does it before the first.
	//
	// The informer calls it before it calls a handler, and so waits for it.
	Append(ctx context.Context, b []byte) error
	// Sync returns when what was appended survives a crash of the machine too.
	Sync(ctx context.Context) error
}

// CheckpointLocker is a CheckpointStore that only one may use at a time. An
// informer holds it from the beginning of a Run to its end.
type CheckpointLocker interface {
	// Lock does not wait: if the store is locked, also by the caller, the error is
	// ErrCheckpointInUse (by errors.Is). The lock lasts until unlock is called or the
	// process ends, however it ends. Unlock may be called from any goroutine; a second
	// call does nothing and returns nil.
	Lock() (unlock func() error, err error)
}

// FileCheckpoint keeps a checkpoint in the file at path, in a directory that is
// there. Two more kinds of names in it belong to the store: path + ".lock", a file
// that is empty and stays, and names that begin with path + ".tmp-", the files that a
// Save writes to and then renames.
//
// It is safe for concurrent use: Saves take turns, and a Load returns one checkpoint
// or the next, never a mixture. It is a CheckpointAppender: an Append is a write to the end of
// the file, and Sync an fsync. It is a CheckpointLocker, and an informer locks it
// during Run; other stores of the same file, in this process and in others, then get
// ErrCheckpointInUse from Lock and Save. A Save without a Lock
// locks the store for as long as it takes. The lock is one of the operating system, which
// ends with its process and leaves nothing to clean up; the file system must have
// such locks, as local ones and NFS do. Load needs none.
//
// A checkpoint survives a crash of the machine once Save has returned nil. If the
// process ends during a Save, what it has written is removed when the store is locked
// next. A first checkpoint gets the permissions 0600, and the next ones those
// of the file that they replace; owner and group are those of the process.
//
// A symbolic link at path is followed, and stays: lock and temporary files are then
// beside the file that it points to.
//
// Errors name the file and the step that failed, and wrap that of the operating
// system: fs.ErrPermission, syscall.ENOSPC and so on can be asked for with errors.Is.
// A directory that is not there is fs.ErrNotExist, as a file that is not there is to
// Load; something else than a file at path is an error to all three. Only one error
// of Save comes after the new checkpoint is in place, that of the step "sync of the
// directory": a crash of the machine may then leave either of the two.
func FileCheckpoint(path string) CheckpointStore { return checkpoint.NewFile(path) }

var (
	_ CheckpointStore    = (*checkpoint.File)(nil)
	_ CheckpointLocker   = (*checkpoint.File)(nil)
	_ CheckpointAppender = (*checkpoint.File)(nil)
)
