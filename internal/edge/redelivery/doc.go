// Package redelivery delivers objects again that a handler has acknowledged, from a list beside the
// watch that goes on.
//
// A Job is one redelivery: what it delivers, and how far it has come. It outlives a run of its
// informer, and its Text a process. Run goes on with it: it reads the newest state in pages, or asks
// for single keys, and hands each object on to the queue of the Informer, which judges it. A list may
// be older than what the handler has: so an object is delivered again only in just the state that the
// handler has acknowledged. The watch delivers any other.
//
// Servers list objects in the order of their keys, as bytes. So a position is a key, and a later
// list is passed over up to it.
package redelivery
