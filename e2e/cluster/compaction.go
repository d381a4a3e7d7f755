package cluster

import (
	"context"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// compactRevKey is where API servers tell each other what has been compacted.
const compactRevKey = "compact_rev_key"

// Compact drops the whole history of etcd: afterwards nothing older than the
// newest revision can be read there, and what a list token points to is gone
// (410) as soon as anything was written after that list began.
//
// An API server keeps snapshots of recent lists in memory and looks only every
// 15 seconds whether they are too old. A test that wants the 410 at once starts
// its cluster with WithoutListSnapshots.
func (c *Cluster) Compact(ctx context.Context) error {
	client, err := c.etcdClient(ctx)
	if err != nil {
		return err
	}
	// All has been answered by then, and the answers are what counts.
	defer func() { _ = client.Close() }()
	now, err := client.Get(ctx, compactRevKey)
	if err != nil {
		return fmt.Errorf("compacting etcd: asking for its revision: %w", err)
	}
	return compact(ctx, client, now.Header.Revision)
}

// CompactAt is Compact, but what came after the revision, and what was there then,
// stays.
func (c *Cluster) CompactAt(ctx context.Context, revision int64) error {
	client, err := c.etcdClient(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return compact(ctx, client, revision)
}

func (c *Cluster) etcdClient(ctx context.Context) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Context:   ctx,
		Endpoints: []string{c.etcdURL},
		Logger:    zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("compacting etcd: %w", err)
	}
	return client, nil
}

func compact(ctx context.Context, client *clientv3.Client, revision int64) error {
	if _, err := client.Put(ctx, compactRevKey, strconv.FormatInt(revision, 10)); err != nil {
		return fmt.Errorf("compacting etcd: announcing revision %d: %w", revision, err)
	}
	if _, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compacting etcd at revision %d: %w", revision, err)
	}
	return nil
}
