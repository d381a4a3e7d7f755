package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rvinformer/informer"
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

func (p *player) currentShard() informer.Shard {
	if s := p.shard.Load(); s != nil {
		return *s
	}
	return informer.Shard{}
}
