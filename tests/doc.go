// Package tests has the tests of the library from outside: through its public names, against the
// simulated server, in virtual time where that is possible.
//
// A file is a topic, by its name: lists, watches, delivery, checkpoints, shared informers, shards,
// status, servers. What they share is in harness: a World is a server and what a test does to
// it, a Bubble has virtual time, and a Recorder is a handler that writes down its calls.
package tests
