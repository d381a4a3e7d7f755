package race

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/bench/podserver/extra"
)

// bareWatch is the first event of a watch that does nothing else: how long after the begin it came,
// or what has failed.
type bareWatch struct {
	took time.Duration
	err  error
}

// openFloor measures how long it takes to open a watch of each resource over a new connection to
// each server, and to read an event of it: the least that informers have to do when all servers are
// back.
func (f *fleet) openFloor(ctx context.Context) error {
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
	if o.Usage, err = extra.Fleet(ctx, f.Control, extra.FleetReturnPath); err != nil { // with a change
		return err
	}
	watches := make([]bareWatch, len(f.Clusters)*len(f.Resources))
	used, began := cpuTime(), time.Now()
	var opening sync.WaitGroup
	for i, cluster := range f.Clusters {
		opening.Go(func() {
			f.openWatches(ctx, clients[i], cluster, version, began, watches[i*len(f.Resources):][:len(f.Resources)])
		})
	}
	opening.Wait()
	o.CPU = cpuTime() - used
	var took []time.Duration
	for _, w := range watches {
		if w.err != nil {
			return w.err
		}
		took = append(took, w.took)
	}
	slices.Sort(took)
	o.Most, o.All = took[len(took)*95/100-1], took[len(took)-1]
	f.result.Outage = o
	o.After, err = extra.Fleet(ctx, f.Control, extra.FleetUsagePath)
	return err
}

// openWatches opens the watches of a server. The first one connects, and the others share its
// connection.
func (f *fleet) openWatches(ctx context.Context, client *http.Client, cluster Cluster, version string, began time.Time, watches []bareWatch) {
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	_, err = bufio.NewReader(response.Body).ReadSlice('\n')
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.Clusters[0].Host+"/api/v1/"+f.Resources[0]+"?limit=1", nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	err = json.NewDecoder(response.Body).Decode(&list)
	return list.Metadata.ResourceVersion, err
}
