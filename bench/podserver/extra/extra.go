// Package extra is what a podserver has and an API server has not. It is apart,
// so that a client of it has none of the server in memory.
package extra

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// EndParameter of a watch request says when it ends: EndInitial, after the
// initial events, or EndBurst, after the changes. It is for readers that do
// not decode, and so could not know.
const (
	EndParameter = "end"
	EndInitial   = "initial"
	EndBurst     = "burst"
)

// SampleSeed is that of the cluster whose objects a podserver with Options.Samples has (package
// internal/samples).
const SampleSeed = 1

// UsagePath answers with a Usage.
const UsagePath = "/usage"

// Usage is what a server has used so far, and what it is at.
type Usage struct {
	CPU      time.Duration // of the whole process
	Requests int64         // for lists and watches
	Bytes    int64         // of bodies written
	Watches  int64         // open now
}

// UsageOf asks the server of config what it has used.
func UsageOf(ctx context.Context, config *rest.Config) (Usage, error) {
	var u Usage
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return u, err
	}
	defer client.CloseIdleConnections()
	err = ask(ctx, client, http.MethodGet, config.Host+UsagePath, &u)
	return u, err
}

// ask reads the answer to a request.
func ask(ctx context.Context, client *http.Client, method, url string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", request.URL.Path, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
