package floor

import (
	"context"
	"io"
	"net/url"
	"strings"
)

// Copies are made of one object, beside what is read.
type Copies struct {
	// Make makes a copy.
	Make func()
	// Bytes is about what the object takes in a body.
	Bytes int
}

// CopyFirst has s make copies of the first object of the set. Decode takes a list of it in JSON,
// and returns what makes a copy.
func (s *Source) CopyFirst(ctx context.Context, decode func(list []byte) (func(), error)) error {
	own, err := s.first(ctx)
	if err != nil {
		return err
	}
	inJSON := *s
	inJSON.Accept = strings.Replace(s.Accept, Protobuf, JSON, 1)
	list, err := inJSON.first(ctx)
	if err != nil {
		return err
	}
	s.Copies = &Copies{Bytes: len(own)}
	s.Copies.Make, err = decode(list)
	return err
}

// first reads a list of one object.
func (s *Source) first(ctx context.Context) ([]byte, error) {
	body, err := s.get(ctx, "", url.Values{"limit": {"1"}})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// pace makes copies as what is written to it comes.
type pace struct {
	*Copies
	left    int // copies to be made
	written int // bytes that no copy was made for
	made    func(resourceVersion string)
}

// Write leaves the last copy for the end of the body.
func (p *pace) Write(b []byte) (int, error) {
	p.written += len(b)
	n := p.written / p.Bytes
	p.written -= n * p.Bytes
	p.copy(min(n, p.left-1))
	return len(b), nil
}

func (p *pace) copy(n int) {
	for range n {
		p.Make()
		p.left--
		p.made("")
	}
}
