// Package leaf is a directory: its packages are what an informer is made of, and none of them knows
// that there is one. Each has a narrow mouth, and its tests and fuzz targets hold what it promises. You may
// stop reading at that mouth, and need none of the code behind it to follow the engine.
//
// In the order in which they are worth a look:
//
//   - wire finds the objects in the bytes of a list or a watch: ListReader, WatchReader.
//   - keytable is the table of keys and versions, without a pointer for a key: Table.
//   - checkpoint is the file format of what is known, and of its journal: Store, Reader, Writer.
//   - rv orders resource versions. It is small, and everything rests on it.
//   - budget is the account of bytes that informers share, and the turns of their lists.
//   - pack keeps encoded objects compressed; objectcache is its only user. Objectsize says what an object
//     takes.
//   - protoobject, jsonmap and typedjson decode objects; intern shares the strings of siblings.
//   - prune and field drop and find fields in encoded objects; fieldpath and gotype are the names of
//     these.
//   - failure says whose an error is, and of which class.
//   - waiting is the line of those that wait for a resource version.
//   - claims, backoff, moment, histogram and redact are each a page long.
//
// A leaf imports other leaves and package api, and nothing else of this module.
package leaf
