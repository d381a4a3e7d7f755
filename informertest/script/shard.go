package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/checkpoint"
)

// parseShard has another shard followed: "all", or parts "A/N" or "A-B/N" of N.
func parseShard(a *args) action {
	word := a.word("")
	key := informer.ShardByUID
	if a.namedOne("by", "uid", "namespace") == "namespace" {
		key = informer.ShardByNamespace
	}
	to, err := shardOf(word, key)
	if err != nil {
		a.fail(err)
	}
	return func(_ context.Context, p *player) error { return p.reshard(to) }
}

func shardOf(word string, key informer.ShardKey) (informer.Shard, error) {
	if word == "all" {
		return informer.Shard{}, nil
	}
	parts, of, _ := strings.Cut(word, "/")
	first, last, several := strings.Cut(parts, "-")
	if !several {
		last = first
	}
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	n, err3 := strconv.Atoi(of)
	if errors.Join(err1, err2, err3) != nil || from < 0 || to < from || n <= to || n > 1<<10 {
		return informer.Shard{}, fmt.Errorf("it needs all, or parts like 0/2 or 1-2/4, not %q", word)
	}
	all := informer.Shard{Key: key}.Split(n)
	return informer.Shard{Key: key, Start: all[from].Start, End: all[to].End}, nil
}

// reshard has another shard followed by the informer that has run last, and by those that start from now on.
func (p *player) reshard(to informer.Shard) error {
	if p.subject != nil && p.subject.SetShard == nil {
		return errors.New("the informer has no SetShard")
	}
	if p.run != nil { // what it says of itself is about one shard
		p.run.mu.Lock()
		defer p.run.mu.Unlock()
	}
	p.shard.Store(&to)
	done := p.oracle.Sharded(to)
	defer done()
	if p.subject == nil {
		return nil
	}
	return p.subject.SetShard(to)
}

// madeFor is the shard that an informer is made with: the one to follow or, if the checkpoint is of one that has nothing in common with it, that one.
// A program changes it then, before the informer runs.
func (p *player) madeFor() (informer.Shard, error) {
	wanted, content := p.currentShard(), p.shelf.content()
	if !p.script.shards || content == nil {
		return wanted, nil
	}
	saved, err := shardIn(content)
	if err == nil && saved.Meets(wanted) {
		saved = wanted
	}
	return saved, err
}

// shardIn is the shard that a checkpoint is of.
func shardIn(content []byte) (informer.Shard, error) {
	r := checkpoint.NewReader(bytes.NewReader(content))
	var err error
	for err == nil {
		_, _, err = r.Next()
	}
	if !errors.Is(err, io.EOF) {
		return informer.Shard{}, fmt.Errorf("reading the shard of the checkpoint: %w", err)
	}
	return informer.ParseShard(r.Metadata()[checkpoint.MetadataShard])
}

func (p *player) currentShard() informer.Shard {
	if s := p.shard.Load(); s != nil {
		return *s
	}
	return informer.Shard{}
}
