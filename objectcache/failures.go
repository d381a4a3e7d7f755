package objectcache

import "sync"

// failures are errors that wait for the ErrorHandler of a Store: it is the user's, so it is called
// with no lock held.
type failures struct {
	mu   sync.Mutex
	list []error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, err)
}

func (f *failures) take() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

// reportFailures calls the ErrorHandler with what has failed under a lock. The caller holds none.
func (s *Store) reportFailures() {
	for _, err := range s.failures.take() {
		s.options.ErrorHandler(err)
	}
}

// reportFailures does the same for the Store, if there is one.
func (i *Informer) reportFailures() {
	if i.store != nil {
		i.store.reportFailures()
	}
}
