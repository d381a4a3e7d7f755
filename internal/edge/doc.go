// Package edge is a directory: its packages are what hangs on the engine. Each is read, and changed,
// alone; an informer follows its resource without them.
//
//   - report is what people are told: the condition, counts, the log, and what Status shows.
//   - audit compares what is acknowledged with the server's objects; auditor does it for one informer.
//   - redelivery delivers objects again, from a list beside the watch.
//   - fanout lets several handlers read one list and one watch, each at its own pace.
//   - userqueue feeds a cache.Queue of the user's in place of the engine's own.
//
// Only the root and the public packages import an edge. The engine's own imports that break this rule are
// listed in tests/repository/architecture_test.go.
package edge
