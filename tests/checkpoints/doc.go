// Package checkpoints tests what a storage remembers, and what a checkpoint saves of it for the next
// process.
package checkpoints
