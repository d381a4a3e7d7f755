package stream

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/client-go/tools/cache"
)

// Table is a consumer: it has the newest state of each object, by its key.
type Table map[string]Change

// Apply takes in a change, and reports whether it is news. The same once more is none.
func (t Table) Apply(c Change) (news bool) {
	key := cache.MetaObjectToName(&c).String()
	old, known := t[key]
	switch {
	case c.Name == "":
		return false
	case c.Deleted:
		delete(t, key)
		return known
	}
	t[key] = c
	return old.UID != c.UID || old.ResourceVersion != c.ResourceVersion
}

// Rebuild reads the table from a stream.
func Rebuild(ctx context.Context, js jetstream.JetStream, name string) (Table, error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	t := Table{}
	for c, err := range Changes(ctx, stream, false) {
		if err != nil {
			return nil, err
		}
		if t.Apply(c); c.Last {
			break
		}
	}
	return t, nil
}

// Versions returns the resource version of each object, by its key.
func (t Table) Versions() map[string]string {
	versions := make(map[string]string, len(t))
	for key, c := range t {
		versions[key] = c.ResourceVersion
	}
	return versions
}
