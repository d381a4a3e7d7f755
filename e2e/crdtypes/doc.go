// Package crdtypes tries internal/typedjson with the Go types of custom resources that people run:
// ten projects, in a module of their own because of what these depend on.
package crdtypes
