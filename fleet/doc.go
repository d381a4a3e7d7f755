// Package fleet follows many clusters in one process.
package fleet
