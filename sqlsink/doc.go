// Package sqlsink keeps the objects of any number of clusters and resources in a PostgreSQL database
// or a SQLite file: a row for each object, and beside the rows how far each resource is complete.
//
// A Sink is a database. A Place is one resource of one cluster in it: what one informer writes. Its
// Storage, Handler and Checkpoint go into the informer.InformerConfig together:
//
//	sink, err := sqlsink.Open(ctx, sqlsink.Config{Address: "postgres://localhost/objects"})
//	...
//	place := sink.Place("production", pods)
//	storage, err := place.Storage(ctx) // what the rows say that was seen
//	...
//	i := informer.NewResourceVersionInformer("pods", informer.InformerConfig{
//		ListerWatcher: factory.ForResource("", pods),
//		ExampleObject: &informer.RawObject{},
//		Storage:       storage,
//		BatchHandler:  place.Handler(),
//		Checkpoint:    place.Checkpoint(),
//	})
//	i.RunWithContext(sink.Context(ctx))
//	return sink.Err()
//
// The directory example has the whole program.
//
// # Tables
//
// The table objects has the columns cluster, group, version, resource, namespace, name, uid,
// resource_version and object, which is the JSON: jsonb in PostgreSQL, TEXT in SQLite. The key is
// cluster, group, resource, namespace and name; in PostgreSQL also uid, so that the owners of two
// shards need not know of each other. Config.Columns adds columns to this table that the database
// computes from the JSON. Users may add indexes, constraints, triggers, views and columns with
// defaults of their own. The other tables (checkpoints, units, mirror_writes) are the package's.
//
// jsonb cannot have everything that JSON can: NUL in a string is U+FFFD there, and an object that
// jsonb refuses altogether, because it is nested too deep for instance, is its metadata alone. In
// these rows, and only there, the column exact has the text of the whole object.
//
// Tables have a version. Open brings those of older versions up to date, and refuses newer ones.
//
// # Promises
//
// Rows and checkpoint are never apart. A batch is one transaction, and is acknowledged when that is
// committed. A checkpoint is saved by a later transaction of the same database, so that it is never
// newer than the rows: not after a crash, a restored backup, or a failover. Rows that are newer than
// the checkpoint are known from the Storage.
//
// One writer at a time. A second one is refused, unless both have Config.Shards. Then each unit of
// fleet/shards has one owner, and each transaction compares the owner's epoch with the one that is
// stored, in the database, before it commits. A writer that lost its unit, or its database, while it
// was paused writes nothing more: the error wraps shards.ErrStaleEpoch, or ends Sink.Context.
//
// A server that has lost what it had acknowledged, as after a failover to a standby that lacked it,
// is noticed with the next transaction of each resource that lost something. Nothing is written
// then. The replica begins again with the unit, and a writer that is alone ends.
//
// A row that the database refuses, for a value, a constraint or a limit, stops no other: it is a
// FailedEvent with the database's own error, and all others of the batch are committed. What is
// wrong with the server instead (conflicts, locks, lost connections, a full disk, a server that is
// read-only or ends) is blamed on no row. Conflicts are tried again at once. A row that is locked, or
// that the server cannot write for another such reason while it writes others, comes later: see
// informer.FailedEvent. If the server writes none, the error wraps that of the driver, and the
// informer tries again until the server is well.
package sqlsink
