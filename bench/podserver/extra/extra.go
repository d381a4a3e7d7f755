// Package extra is what podservers have and API servers have not. It is apart,
// so that a client of them has none of the servers in memory.
package extra

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
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
// internal/testkit/samples).
const SampleSeed = 1

// The paths of the controls of servers, which are in one process. Each answers with Usage, as POST.
const (
	// UsagePath does nothing else.
	UsagePath = "/usage"
	// LeavePath has all servers go away: connections are broken, and attempts to connect are
	// counted and refused.
	LeavePath = "/leave"
	// ReturnPath has them come back, with one more object of each resource changed.
	ReturnPath = "/return"
)

// Usage is what servers have used so far, and what they are at.
type Usage struct {
	CPU      time.Duration // of the whole process
	Requests int64         // for lists and watches
	Bytes    int64         // of bodies written
	Watches  int64         // open now
	// Accepted are the connections to healthy servers that there were so far.
	Accepted int64
	// Attempts are those to connect while the servers were away last, and MostAttempts the most of
	// them at one server within one second.
	Attempts, MostAttempts int
}

// Control asks what controls servers, at an address.
func Control(ctx context.Context, address, path string) (u Usage, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, nil)
	if err != nil {
		return u, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return u, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return u, fmt.Errorf("%s: %s", path, response.Status)
	}
	return u, json.NewDecoder(response.Body).Decode(&u)
}
