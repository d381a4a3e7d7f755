// Package engine is a directory: its packages list, watch, queue, deliver, acknowledge and save. In the
// order in which an object passes them, which is also the order to read them in:
//
//  1. listwatch decides what to ask the server for next. It is a pure function with a table for a test:
//     begin here, and read machine.go and outcome.go as a whole.
//  2. follower does what listwatch says: requests, generations, pauses.
//  3. server is one API server and how it is asked: connections, outages, which cluster it is. Read
//     resource.go, and the rest when you need it.
//  4. source makes objects of what a server answers, page by page and change by change.
//  5. object is one object on its way: lent bytes, bytes of its own, or decoded.
//  6. intake copies what differs from what is known, and makes deltas of it; sink says whether these go
//     into the queue or into a store.
//  7. recency has the rules of what is older than what, which the queue and the object cache share.
//  8. deltaqueue holds what waits for the handler, one entry for a key.
//  9. flow is one run of an informer: its workers call the handler. Blame says for which events of a
//     batch a handler has failed.
//  10. known is what the handler has acknowledged.
//  11. keeper decides when that is saved, and where a run goes on; journal is what happens between two
//     saves.
//
// One may stop after each of them and know what the ones before do. The engine imports leaves; the edges
// that it still imports are listed in tests/repository/architecture_test.go, in a list that becomes only shorter.
package engine
