// Package oracle judges informers: it records what a server did and what a program was
// told of it, and says what was wrong, and why. It is for tests of informers of this
// module, of client-go and of one's own, against any server.
//
// It knows nothing of how the two are made. The test calls Wrote for every write, and
// Handler or BatchHandler for every event:
//
//	o := oracle.New(oracle.Options{})
//	handler := o.Handler(nil)       // for the informer
//	o.Started(oracle.Run{})         // before the informer runs
//	o.Wrote(oracle.Write{...})      // for each write, before it can be seen
//	o.Synced()                      // when HasSynced was seen to be true
//	o.Settled(stored)               // when all is quiet
//	err := o.Check()
//
// What is promised is judged by Validators, each on its own. A Violation shows the
// shortest history that it follows from.
//
// # Words
//
// An event is acknowledged when the handler has returned from the call that told it. A
// run is from one Started to the next Stopped. An epoch is from one restore of the server
// to the next. The handler is unsure of a key after a call that failed, and after a run
// that was killed or that goes on from a checkpoint: the informer may tell it again then
// what it knows.
//
// # Versions
//
// Resource versions are opaque. They are compared for equality, and the order of the
// writes says which is newer; Options.Compare is asked only where that does not tell.
// After a restore, the same version may be of something else: an event is taken to
// be of the epoch that makes it right.
//
// # What it cannot see
//
// It does not know what an informer has asked for or been answered, but for Listed and
// Requested.
// Where that decides, it takes what is told to be right. It does not look into objects
// beyond name, UID and version.
package oracle
