package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rvinformer/informer"
	"k8s.io/client-go/rest"
)

// mirror is one run: the clusters, the database, and the writer between them, which gives them
// their turns.
type mirror struct {
	database database
	writer   *writer
	clusters []*cluster
	screen   *screen
	board    *board
}

// mirrorConfig is what a run needs to know.
type mirrorConfig struct {
	endpoints []endpoint
	resources []string // empty = all
	database  database
	store     store         // what the writer writes to: the database
	relist    bool          // look at all objects again, also where a checkpoint says how far the database is
	beginAnew bool          // replace the rows and the checkpoint of another cluster
	timeout   time.Duration // of a first sync without progress; 0 = never
	prune     []string
	pageSize  int64 // of lists; 0 = the informer's default
	board     *board
}

// The clients' own brakes. A cluster with hundreds of resources starts that many lists at once; the
// server's priority and fairness does the rest.
const (
	clientQPS   = 50
	clientBurst = 300
)

// feedWorkers is how many batches of one resource may be on their way into the database: while one
// is committed, the next is brought there.
const feedWorkers = 2

// maxWaiting bounds the bytes of all objects that are read and not in the database yet. Beyond it
// the informers stop reading from their servers.
const maxWaiting = 4 << 20

func newMirror(config mirrorConfig, to *screen) *mirror {
	m := &mirror{
		database: config.database,
		writer:   newWriter("database "+config.database.String(), config.store, config.database.Writers(), to.Say),
		screen:   to,
		board:    config.board,
	}
	budget := informer.NewBudget(maxWaiting)
	m.board.informers.AddBudget("mirror", budget)
	for _, e := range config.endpoints {
		client := rest.CopyConfig(e.client)
		client.UserAgent = userAgent
		client.QPS, client.Burst = clientQPS, clientBurst
		feeds := feedConfig{writer: m.writer, timeout: config.timeout, prune: config.prune, pageSize: config.pageSize, raw: config.database.TakesRaw(), beginAnew: config.beginAnew, budget: budget,
			workers: min(feedWorkers, config.database.Writers())}
		m.clusters = append(m.clusters, newCluster(endpoint{e.name, client}, config.resources, config.database, config.relist, feeds, m.board))
	}
	return m
}

// Run mirrors until the context ends, the database is found to be damaged, or during returns, which
// runs meanwhile. It returns after the batches in progress are written and every goroutine has
// ended. The error is during's, and what could not be written; or, alone, the database's damage.
func (m *mirror) Run(ctx context.Context, during func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.database.Sound(), cancel)()
	watched, lookAway := context.WithCancel(ctx)
	defer lookAway()

	var display, clusters sync.WaitGroup
	for _, c := range m.clusters {
		clusters.Go(func() { c.Run(ctx) })
	}
	display.Go(func() { newDisplay(m.screen, m.Rows, time.Now()).Run(watched) })

	err := during(ctx)

	// First the display, to which the end of everything would look like trouble.
	lookAway()
	display.Wait()
	cancel()
	clusters.Wait()
	if m.database.Sound().Err() != nil {
		return context.Cause(m.database.Sound())
	}
	return errors.Join(err, m.writer.Unwritten())
}

// errNothing says that no cluster has a resource to mirror. Why is in their rows.
var errNothing = errors.New("there is nothing to mirror")

// Follow waits until the context ends. It returns errNothing as soon as there is nothing to wait
// for.
func (m *mirror) Follow(ctx context.Context) error {
	for _, c := range m.clusters {
		select {
		case <-c.ready:
		case <-ctx.Done():
			return nil
		}
	}
	if ctx.Err() == nil && len(m.Feeds()) == 0 {
		return errNothing
	}
	<-ctx.Done()
	return nil
}

// Settled waits until every resource of every cluster is synced, and its objects in the database,
// or given up.
func (m *mirror) Settled(ctx context.Context) error {
	for _, c := range m.clusters {
		if err := c.Settled(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Rows returns the state of all clusters.
func (m *mirror) Rows() []row {
	var rows []row
	for _, c := range m.clusters {
		rows = append(rows, c.Rows()...)
	}
	return rows
}

// Feeds returns the feeds of all clusters so far.
func (m *mirror) Feeds() []*feed {
	var feeds []*feed
	for _, c := range m.clusters {
		feeds = append(feeds, c.Feeds()...)
	}
	return feeds
}

// Feed finds the feed of one resource, if it is mirrored.
func (m *mirror) Feed(at place) (f *feed, found bool) {
	for _, f := range m.Feeds() {
		if f.place == at {
			return f, true
		}
	}
	return nil, false
}
