package main

import (
	"context"
	"fmt"

	"github.com/rvinformer/informer/informertest"
	"k8s.io/apimachinery/pkg/runtime"
)

// stock is all objects of one kind in one simulated cluster. Object number n exists if first <= n <
// next. One goroutine.
type stock struct {
	kind        demoKind
	server      *informertest.Server
	first, next int
	revision    int
}

// Fill adds n objects, or as many as there are until the context ends.
func (s *stock) Fill(ctx context.Context, n int) error {
	err := s.server.Load(s.kind.resource, func(yield func(runtime.Object) bool) {
		for range n {
			if ctx.Err() != nil || !yield(s.kind.object(s.next, 0)) {
				return
			}
			s.next++
		}
	})
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

// Create adds an object behind the last one.
func (s *stock) Create() error {
	if _, err := s.server.Create(s.kind.resource, s.kind.object(s.next, 0)); err != nil {
		return fmt.Errorf("creating %s number %d: %w", s.kind.resource.Resource, s.next, err)
	}
	s.next++
	return nil
}

// Update changes the object with this number, counted from the first that exists, and returns its
// new resource version: the empty one if there is no object.
func (s *stock) Update(number int) (resourceVersion string, err error) {
	if s.first == s.next {
		return "", nil
	}
	number = s.nth(number)
	s.revision++
	updated, err := s.server.Update(s.kind.resource, s.kind.object(number, s.revision))
	if err != nil {
		return "", fmt.Errorf("updating %s number %d: %w", s.kind.resource.Resource, number, err)
	}
	return updated.GetResourceVersion(), nil
}

// Recreate deletes an object and creates another one under the same name: only the UID tells them
// apart.
func (s *stock) Recreate(number int) error {
	if s.first == s.next {
		return nil
	}
	number = s.nth(number)
	if err := s.delete(number); err != nil {
		return err
	}
	if _, err := s.server.Create(s.kind.resource, s.kind.object(number, 0)); err != nil {
		return fmt.Errorf("creating %s number %d again: %w", s.kind.resource.Resource, number, err)
	}
	return nil
}

// Delete removes the first object.
func (s *stock) Delete() error {
	if s.first == s.next {
		return nil
	}
	if err := s.delete(s.first); err != nil {
		return err
	}
	s.first++
	return nil
}

func (s *stock) delete(number int) error {
	object := s.kind.object(number, 0)
	if err := s.server.Delete(s.kind.resource, object.GetNamespace(), object.GetName()); err != nil {
		return fmt.Errorf("deleting %s number %d: %w", s.kind.resource.Resource, number, err)
	}
	return nil
}

// nth is the number of an object that exists, for any number.
func (s *stock) nth(number int) int { return s.first + number%(s.next-s.first) }
