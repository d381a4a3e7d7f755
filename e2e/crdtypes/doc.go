// Package crdtypes tries internal/leaf/typedjson with the Go types of custom resources that people run:
// ten projects, in a module of their own because these projects have many dependencies.
package crdtypes
