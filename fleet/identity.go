package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/rvinformer/informer"
)

// errUnsaid says that a cluster which was known by its UID does not say it any more.
var errUnsaid = errors.New("the server does not say any more which cluster it is of")

// learn asks the server which cluster it is of, until it has said so once. A later cluster at the same
// address is told by that.
func (c *cluster) learn(ctx context.Context) {
	if c.identity() != "" {
		return
	}
	source, err := c.server.Identify(ctx)
	if err != nil {
		return // after the next discovery
	}
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	c.uid = source.Cluster
}

func (c *cluster) identity() string {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	return c.uid
}

// checkSame asks the server whether it is of the cluster that was learnt. What another cluster does not
// serve says nothing about the objects of this one.
func (c *cluster) checkSame(ctx context.Context) error {
	known := c.identity()
	if known == "" {
		return nil
	}
	source, err := c.server.Identify(c.overseen(ctx, nil))
	switch {
	case err != nil:
		return err
	case source.Cluster == "":
		return errUnsaid
	case source.Cluster != known:
		return fmt.Errorf("%w: the UID of its namespace kube-system is %q, not %q", informer.ErrClusterReplaced, source.Cluster, known)
	}
	return nil
}
