package report

import "github.com/rvinformer/informer/api"

// OfStore wraps what the method op of a store returned for a key; nil stays nil.
func OfStore(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &api.StoreError{Op: op, Key: key, Err: err}
}
