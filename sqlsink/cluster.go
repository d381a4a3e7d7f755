package sqlsink

import (
	"bytes"
	"context"
	"io"
	"io/fs"

	saved "github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// ofCluster returns a checkpoint that names the cluster of the rows, and nothing else, for a place that has
// no checkpoint of its own: because it is of another version, another shard or another resource than
// before. An informer of another cluster waits then, as it does for a checkpoint of its own. The error is
// fs.ErrNotExist if there are no such rows, or if their checkpoints do not agree.
func (c checkpoint) ofCluster(ctx context.Context) (io.ReadCloser, error) {
	var cluster, own saved.Source
	agree := true
	err := c.sink.db.Heads(ctx, c.at, func(head []byte, hasRows bool) {
		switch s := saved.SourceOfHead(head).OfCluster(); {
		case s.Server == "": // of a server that cannot be told
		case !hasRows:
			own = s
		case cluster.Server != "" && cluster.Check(s) != nil:
			agree = false
		case cluster.Cluster == "":
			cluster = s
		}
	})
	if err != nil {
		return nil, failure(c.sink.unread(ctx, "checkpoints", c.at, err))
	}
	if own.Server != "" && own.Check(cluster) != nil { // that of a resource which has begun anew, and is empty
		agree = false
	}
	if !agree || cluster.Server == "" {
		return nil, fs.ErrNotExist
	}
	var content bytes.Buffer
	if err := saved.WriteOf(cluster, &content); err != nil {
		return nil, err
	}
	return io.NopCloser(&content), nil
}
