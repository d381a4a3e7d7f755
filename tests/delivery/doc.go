// Package delivery tests what handlers are told, of which objects and in which order, also after
// they fail.
package delivery
