// Package oracle judges informers: it records what a server did and what a program was
// told of it, and says what was wrong, and why.
//
// It knows nothing of how the two are made. Somebody calls Wrote for every write, and
// Handler or BatchHandler for every event:
//
//	o := oracle.New(oracle.Options{})
//	handler := o.Handler(nil)       // for the informer
//	o.Started(oracle.Run{})         // before the informer runs
//	o.Wrote(oracle.Write{...})      // for each write, before anybody can see it
//	o.Synced()                      // when HasSynced was seen to be true
//	o.Settled(stored)               // when all is quiet
//	err := o.Check()
//
// What is promised is judged by Validators, each on its own. A Violation shows the
// shortest history that it follows from.
//
// Resource versions are opaque. They are compared for equality, and the order of the
// writes says which is newer; Options.Compare is asked only where that does not tell.
package oracle
