// Package controllerruntime plays controller-runtime's own tests of caches and of
// read-your-own-writes against a real kube-apiserver, with the cache of this library in the place
// of controller-runtime's.
//
// The tests come out of controller-runtime's module, in the version that is required here. They are
// changed in one place, the constructor of the cache. The suites that begin them are in cachesuite
// and clientsuite.
package controllerruntime
