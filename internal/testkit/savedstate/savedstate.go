// Package savedstate reads all that a checkpoint and its journal hold into maps, for tests and
// scripts. It does not use package known, which does so for informers and is judged by them.
package savedstate

import (
	"io"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// Content is what a checkpoint says, with its journal.
type Content struct {
	Metadata map[string]string
	// Resume is the resource version to go on from. Journaled tells that it is the journal's.
	Resume    string
	Journaled bool
	// Redelivery is the one under way, as JSON, empty if there is none.
	Redelivery string
	Versions   map[string]keytable.Version
	// Begun are the keys that the handler may have begun to take in since.
	Begun map[string]bool
	// Dead are those of Begun that have a dead letter, each with a text that differs from that of
	// another letter: whatever has happened to them up to Resume is passed over.
	Dead map[string]string
	// Torn is what is wrong with the end of the journal, nil if nothing is.
	Torn error
}

// Read reads a checkpoint, and its journal to the last whole record.
func Read(r io.Reader) (*Content, error) {
	c := &Content{Versions: map[string]keytable.Version{}, Begun: map[string]bool{}, Dead: map[string]string{}}
	cr := checkpoint.NewReader(r)
	for {
		key, version, err := cr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		c.Versions[strings.Clone(key)] = own(version)
	}
	c.Metadata = maps.Clone(cr.Metadata())
	c.Resume, c.Redelivery = c.Metadata[checkpoint.MetadataResourceVersion], c.Metadata[checkpoint.MetadataRedelivery]
	for {
		record, key, version, err := cr.NextRecord()
		if err == io.EOF {
			c.Torn = cr.Torn()
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		c.replay(record, strings.Clone(key), own(version))
	}
}

// replay applies a record of the journal.
func (c *Content) replay(record checkpoint.Record, key string, version keytable.Version) {
	switch record {
	case checkpoint.Resume:
		c.Resume, c.Redelivery, c.Journaled = version.ResourceVersion, string(version.UID), true
	case checkpoint.Begun:
		c.Begun[key] = true
	case checkpoint.Dead:
		c.Begun[key], c.Dead[key] = true, version.ResourceVersion
	case checkpoint.Acknowledged:
		c.Versions[key] = version
		delete(c.Begun, key)
		delete(c.Dead, key)
	case checkpoint.Gone:
		delete(c.Versions, key)
		delete(c.Begun, key)
		delete(c.Dead, key)
	}
}

// own is a version that is not lent.
func own(b *keytable.Binary) keytable.Version {
	v := b.Version()
	return keytable.Version{ResourceVersion: strings.Clone(v.ResourceVersion), UID: types.UID(strings.Clone(string(v.UID)))}
}

// State is the resource version of every key.
func (c *Content) State() map[string]string {
	state := map[string]string{}
	for key, v := range c.Versions {
		state[key] = v.ResourceVersion
	}
	return state
}
