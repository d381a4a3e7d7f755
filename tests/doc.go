// Package tests has the tests of the library from outside: through its public names, against the
// simulated server, in virtual time where that is possible.
//
// A file is a topic, by its name: lists, watches, delivery, checkpoints, shared informers, shards,
// status, servers. The harness is in harness_test.go: a world is a server and what a test does to
// it, a bubble has virtual time, and a recorder is a handler that writes down its calls.
package tests
