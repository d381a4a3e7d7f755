// Package testkit is a directory: its packages are for the tests, the benchmarks and the make targets of
// this repository. Of what users run, only package informertest and the mirror's demo contain some of them.
//
//   - heartbeat runs a command and says every few seconds what runs; the Makefile calls it.
//   - mutants changes the engine in one place at a time and runs its tests: make mutants.
//   - samples and samplepod have objects with the entropy of real ones.
//   - savedstate reads all that a checkpoint and its journal hold.
//   - rapidseed is the seed of random tests; selfsigned makes certificates.
package testkit
