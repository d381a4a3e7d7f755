package race

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/bench/podserver/extra"
)

// readFleet measures the reading of the lists of a fleet, and, if there is to be an outage, the
// opening of as many watches.
func readFleet(ctx context.Context, f *fleet) error {
	clients := make([]*http.Client, len(f.Clusters))
	runtime.GC()
	clock := f.startStopwatch()
	errs := make([]error, len(f.Clusters))
	var reading sync.WaitGroup
	for i, cluster := range f.Clusters {
		client, err := rest.HTTPClientFor(cluster.Config())
		if err != nil {
			return err
		}
		clients[i] = client
		reading.Go(func() { errs[i] = f.readLists(ctx, client, cluster) })
	}
	reading.Wait()
	clock.stop(&f.result)
	err := errors.Join(errs...)
	if err != nil {
		return err
	}
	for _, client := range clients {
		client.CloseIdleConnections()
	}
	if f.costs.After, err = extra.Control(ctx, f.Control, extra.UsagePath); err != nil {
		return err
	}
	if err := f.result.notePeakRSS(); err != nil || f.Outage == 0 {
		return err
	}
	return f.openWatches(ctx)
}

func (f *fleet) readLists(ctx context.Context, client *http.Client, cluster Cluster) error {
	for _, resource := range f.Resources {
		body, err := Get(ctx, client, cluster.Host+"/api/v1/"+resource, "")
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, body)
		body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// bareWatch is the first event of a watch that does nothing else: how long after the begin it came,
// or what has failed.
type bareWatch struct {
	took time.Duration
	err  error
}

// openWatches measures how long it takes to open a watch of each resource over a new connection to
// each server, and to read an event of it: the least that informers have to do when all servers are
// back.
func (f *fleet) openWatches(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	version, err := f.listedVersion(ctx)
	if err != nil {
		return err
	}
	clients := make([]*http.Client, len(f.Clusters))
	for i, cluster := range f.Clusters {
		if clients[i], err = rest.HTTPClientFor(cluster.Config()); err != nil {
			return err
		}
		clients[i].CloseIdleConnections() // those of the lists
	}
	o := &FleetOutage{}
	if o.Usage, err = extra.Control(ctx, f.Control, extra.ReturnPath); err != nil { // with a change
		return err
	}
	watches := make([]bareWatch, len(f.Clusters)*len(f.Resources))
	used, began := CPUTime(), time.Now()
	var opening sync.WaitGroup
	for i, cluster := range f.Clusters {
		opening.Go(func() {
			f.openWatchesOf(ctx, clients[i], cluster, version, began, watches[i*len(f.Resources):][:len(f.Resources)])
		})
	}
	opening.Wait()
	o.CPU = CPUTime() - used
	var took []time.Duration
	for _, w := range watches {
		if w.err != nil {
			return w.err
		}
		took = append(took, w.took)
	}
	o.noteTimes(took)
	f.costs.Outage = o
	o.After, err = extra.Control(ctx, f.Control, extra.UsagePath)
	return err
}

// openWatchesOf opens the watches of a server. The first one connects, and the others share its
// connection.
func (f *fleet) openWatchesOf(ctx context.Context, client *http.Client, cluster Cluster, version string, began time.Time, watches []bareWatch) {
	open := func(k int) {
		watches[k].err = firstEvent(ctx, client, cluster.Host+"/api/v1/"+f.Resources[k]+"?watch=true&allowWatchBookmarks=true&resourceVersion="+version)
		watches[k].took = time.Since(began)
	}
	open(0)
	var others sync.WaitGroup
	for k := 1; k < len(watches); k++ {
		others.Go(func() { open(k) })
	}
	others.Wait()
}

// firstEvent reads the first event of a watch, which ends with ctx.
func firstEvent(ctx context.Context, client *http.Client, url string) error {
	body, err := Get(ctx, client, url, "")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { body.Close() })
	_, err = bufio.NewReader(body).ReadSlice('\n')
	if err == bufio.ErrBufferFull { // more than its beginning is not needed
		err = nil
	}
	return err
}

// listedVersion is the resource version of the lists of all servers.
func (f *fleet) listedVersion(ctx context.Context) (string, error) {
	client, err := rest.HTTPClientFor(f.Clusters[0].Config())
	if err != nil {
		return "", err
	}
	body, err := Get(ctx, client, f.Clusters[0].Host+"/api/v1/"+f.Resources[0]+"?limit=1", "")
	if err != nil {
		return "", err
	}
	defer body.Close()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.NewDecoder(body).Decode(&list)
	return list.Metadata.ResourceVersion, err
}
