// Command kine is kine over SQLite, which k3s keeps its objects in: it speaks etcd's protocol. It is
// built from its own module so that the e2e tests need no downloaded binary, and without the drivers
// of other databases, which take minutes to build.
//
//	kine -listen 127.0.0.1:2379 -database db/state.db
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/generic"
	"github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/k3s-io/kine/pkg/server"
	"google.golang.org/grpc"
)

// What kine has by default, but for the compaction.
const (
	emulatedEtcd   = "3.6.11"
	notifyInterval = 5 * time.Second
	maxMessage     = 16 << 20
)

func main() {
	listen := flag.String("listen", "127.0.0.1:2379", "where clients of etcd connect")
	database := flag.String("database", "state.db", "the file of SQLite")
	compactEvery := flag.Duration("compact-every", 5*time.Minute, "how often history is dropped; 0: never")
	retain := flag.Int64("retain", 1000, "how many of the newest revisions a compaction keeps")
	flag.Parse()
	if err := run(context.Background(), *listen, *database, *compactEvery, *retain); err != nil {
		fmt.Fprintln(os.Stderr, "kine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, database string, compactEvery time.Duration, retain int64) error {
	var background sync.WaitGroup
	_, backend, err := sqlite.New(ctx, &background, &drivers.Config{
		Scheme:               "sqlite",
		DataSourceName:       database + "?" + sqlite.DefaultParams,
		ConnectionPoolConfig: generic.ConnectionPoolConfig{},
		CompactInterval:      compactEvery,
		CompactTimeout:       5 * time.Second,
		CompactMinRetain:     retain,
		CompactBatchSize:     1000,
		PollBatchSize:        500,
		PollInterval:         time.Second,
	})
	if err != nil {
		return fmt.Errorf("opening %s: %w", database, err)
	}
	if err := backend.Start(ctx); err != nil {
		return fmt.Errorf("starting over %s: %w", database, err)
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(1<<31-1))
	server.New(backend, "http", notifyInterval, emulatedEtcd).Register(s)
	return s.Serve(listener)
}
