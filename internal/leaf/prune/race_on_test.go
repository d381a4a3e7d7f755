//go:build race

package prune_test

// raced tells that the race detector is on. It makes the tests of one goroutine ten times as slow
// and finds nothing in them, so that they are smaller then; make test runs them whole, without it.
const raced = true
