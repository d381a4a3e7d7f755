package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/testkit/savedstate"
)

// parseShard has informers that start from now on follow another shard: "all", or parts "A/N" or
// "A-B/N" of N.
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
	return func(_ context.Context, p *player) error {
		p.shard = to
		return nil
	}
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
	s := informer.Shard{Key: key, Start: all[from].Start, End: all[to].End}
	if s.IsAll() {
		s = informer.Shard{} // whatever its Key
	}
	return s, nil
}

// clearStore drops a checkpoint of a shard that has nothing in common with the one to follow: an
// informer would refuse it.
func (p *player) clearStore() error {
	content := p.stableStore.content()
	if !p.script.shards || content == nil {
		return nil
	}
	saved, err := readCheckpoint(bytes.NewReader(content))
	if err != nil {
		return err
	}
	of, err := shardOfCheckpoint(saved)
	if err == nil && !of.Meets(p.shard) {
		p.stableStore.clear()
	}
	return err
}

func shardOfCheckpoint(c *savedstate.Content) (informer.Shard, error) {
	return informer.ParseShard(c.Metadata[checkpoint.MetadataShard])
}
