// Package watches tests how a watch continues, breaks, goes silent and is replaced, and how current
// it leaves an informer.
package watches
