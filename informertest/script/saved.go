package script

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/checkpoint"
)

// saved is what a checkpoint has, with its journal.
type saved struct {
	// resume is the resource version to go on from, and journaled tells that it is the journal's.
	resume    string
	journaled bool
	shard     informer.Shard
	// known are versions by key, empty for an object that the handler has only begun with. begun are
	// the other keys that it has begun with since.
	known map[string]string
	begun map[string]bool
	// letters are the versions of the dead letters, by key.
	letters map[string]string
}

// readSaved reads a checkpoint. A torn end of the journal is an error.
func readSaved(content io.Reader) (*saved, error) {
	s := &saved{known: map[string]string{}, begun: map[string]bool{}, letters: map[string]string{}}
	r := checkpoint.NewReader(content)
	for {
		key, version, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the checkpoint: %w", err)
		}
		s.known[strings.Clone(key)] = strings.Clone(version.Version().ResourceVersion)
	}
	s.resume = r.Metadata()["resourceVersion"]
	var err error
	if s.shard, err = informer.ParseShard(r.Metadata()[checkpoint.MetadataShard]); err != nil {
		return nil, err
	}
	for {
		record, key, version, err := r.NextRecord()
		if errors.Is(err, io.EOF) {
			err = r.Torn()
			if err == nil {
				return s, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("reading the journal: %w", err)
		}
		s.replay(record, strings.Clone(key), strings.Clone(version.Version().ResourceVersion))
	}
}

// replay adds a record of the journal.
func (s *saved) replay(record checkpoint.Record, key, version string) {
	switch record {
	case checkpoint.Resume:
		s.resume, s.journaled = version, true
	case checkpoint.Acknowledged:
		s.known[key] = version
		delete(s.begun, key)
		delete(s.letters, key)
	case checkpoint.Gone:
		delete(s.known, key)
		delete(s.begun, key)
		delete(s.letters, key)
	case checkpoint.Dead:
		s.letters[key] = version
		s.begin(key)
	case checkpoint.Begun:
		s.begin(key)
	}
}

func (s *saved) begin(key string) {
	if _, known := s.known[key]; known {
		s.begun[key] = true
	} else {
		s.known[key] = ""
	}
}
