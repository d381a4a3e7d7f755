package extra

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// The paths of what controls the servers of a fleet, which are in one process. Each answers with
// FleetUsage, as POST.
const (
	// FleetUsagePath does nothing else.
	FleetUsagePath = "/fleet/usage"
	// FleetLeavePath has all servers go away: connections are broken, and attempts to connect are
	// counted and refused.
	FleetLeavePath = "/fleet/leave"
	// FleetReturnPath has them come back, with one more object of each resource changed.
	FleetReturnPath = "/fleet/return"
)

// FleetUsage is what the servers of a fleet have used so far, and what they are at.
type FleetUsage struct {
	Usage
	// Open are the connections to healthy servers, and Accepted those that there were so far.
	Open, Accepted int64
	// Attempts are those to connect while the servers were away last, and MostAttempts the most of
	// them at one server within one second.
	Attempts, MostAttempts int
}

// Fleet asks what controls the servers, at an address.
func Fleet(ctx context.Context, address, path string) (u FleetUsage, err error) {
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
