package extra

import (
	"context"
	"net/http"
)

// The paths of the controls of a fleet of servers, which are in one process. Each answers with
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
	err = ask(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, http.MethodPost, "http://"+address+path, &u)
	return u, err
}
