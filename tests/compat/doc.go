// Package compat tests what takes the place of the reflectors and controllers of client-go, and of
// the informer of clusterpedia.
package compat
