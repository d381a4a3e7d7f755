package demo

import (
	"cmp"
	"context"

	"github.com/rvinformer/informer/informertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Stock is all objects of one kind in one simulated cluster. Object number n exists if first <= n <
// next. There is nothing to update, recreate or delete while it is empty. One goroutine.
type Stock struct {
	Kind        Kind
	server      *informertest.Server
	first, next int
	revision    int
}

// Len is the number of objects.
func (s *Stock) Len() int { return s.next - s.first }

// Fill adds n objects, or as many as there are until the context ends.
func (s *Stock) Fill(ctx context.Context, n int) error {
	err := s.server.Load(s.Kind.Resource, func(yield func(runtime.Object) bool) {
		for range n {
			if ctx.Err() != nil || !yield(s.Kind.object(s.next, 0)) {
				return
			}
			s.next++
		}
	})
	return cmp.Or(err, context.Cause(ctx))
}

// Create adds an object behind the last one.
func (s *Stock) Create() error {
	s.next++
	return s.create(s.next - 1)
}

// Update changes the object with this number, counted from the first that exists.
func (s *Stock) Update(number int) error {
	s.revision++
	_, err := s.server.Update(s.Kind.Resource, s.Kind.object(s.nth(number), s.revision))
	return err
}

// Recreate deletes an object and creates another one under the same name: only the UID tells them
// apart.
func (s *Stock) Recreate(number int) error {
	if err := s.delete(s.nth(number)); err != nil {
		return err
	}
	return s.create(s.nth(number))
}

// Delete removes the first object.
func (s *Stock) Delete() error {
	s.first++
	return s.delete(s.first - 1)
}

func (s *Stock) create(number int) error {
	_, err := s.server.Create(s.Kind.Resource, s.Kind.object(number, 0))
	return err
}

func (s *Stock) delete(number int) error {
	object := s.Kind.object(number, 0).(metav1.Object)
	return s.server.Delete(s.Kind.Resource, object.GetNamespace(), object.GetName())
}

// nth is the number of an object that exists, for any number.
func (s *Stock) nth(number int) int { return s.first + number%s.Len() }
