// Package harness has what tests of several topics share: a World is a server and what a test does
// to it, a Bubble has virtual time, and a Recorder is a handler that writes down its calls.
package harness
