package controller

import (
	"k8s.io/client-go/tools/cache"
)

// Event is something that happened to an object.
type Event struct {
	// Key is "namespace/name", or "name" for a cluster-scoped object.
	Key string
	// Obj is the object that Upsert or Delete was given.
	Obj interface{}
}

// Resource is what a Controller follows, and what it does about it. Its methods may be
// called from several goroutines if Workers is more than one, but never for one key at a
// time. One that is a Backgrounder too has its Run called.
type Resource interface {
	// Informer returns the informer to follow. Each Run of a Controller calls it once. It
	// may be one that others use, or run, as well: the Controller starts it if it does not run,
	// and stops it if it was started by a Controller, when the last of those that use it
	// ends. One of a factory (package factory) should be started there before Run is called,
	// or the Controller stops it for all its users.
	// One that has stopped cannot be started again: a Resource that is to run more
	// than once returns a new one each time.
	Informer() cache.SharedIndexInformer

	// Upsert is called for an object that is there. Obj is what the informer's store has,
	// which is not to be changed. After an error it is called again: see MaxRetries.
	Upsert(key string, obj interface{}) error

	// Delete is called for an object that is gone. Obj is its last known state. It may be
	// older than the final one, and nil. After an error it is called again.
	Delete(key string, obj interface{}) error
}

// Backgrounder is a Resource that has something to do while the Controller runs.
type Backgrounder interface {
	// Run is called before the informer is started. The channel is closed when the
	// Controller is to stop. The Controller then waits for Run to return, but no longer
	// than StopTimeout.
	Run(<-chan struct{})
}

// ResourceUpsertFunc is called for an object that is there: see Resource.
type ResourceUpsertFunc func(key string, obj interface{}) error

// ResourceDeleteFunc is called for an object that is gone: see Resource.
type ResourceDeleteFunc func(key string, obj interface{}) error

// NewResource returns a Resource of an informer and two functions. It panics if one of
// them is nil.
func NewResource(informer cache.SharedIndexInformer, upsert ResourceUpsertFunc, delete ResourceDeleteFunc) Resource {
	if informer == nil {
		panic("controller: NewResource: the informer is required")
	}
	return basicResource{functionsOf("NewResource", upsert, delete), informer}
}

type basicResource struct {
	functions
	informer cache.SharedIndexInformer
}

func (r basicResource) Informer() cache.SharedIndexInformer { return r.informer }

// functions are those of a Resource that calls functions.
type functions struct {
	upsert ResourceUpsertFunc
	delete ResourceDeleteFunc
}

func functionsOf(constructor string, upsert ResourceUpsertFunc, delete ResourceDeleteFunc) functions {
	switch {
	case upsert == nil:
		panic("controller: " + constructor + ": the upsert function is required")
	case delete == nil:
		panic("controller: " + constructor + ": the delete function is required")
	}
	return functions{upsert, delete}
}

func (f functions) Upsert(key string, obj interface{}) error { return f.upsert(key, obj) }
func (f functions) Delete(key string, obj interface{}) error { return f.delete(key, obj) }
