// Package lists tests how a set is listed: in pages, whole, or as a watch-list, and what the lists of
// odd servers do.
package lists
