// Package delivery tests what handlers are told, about which objects and in which order, also after
// they fail.
package delivery
