package fleet

import (
	"fmt"
	"time"
)

// ClusterState says how the discovery of a cluster is.
type ClusterState int

const (
	// ClusterIdle: no unit of the cluster is followed here, so that it is not asked.
	ClusterIdle ClusterState = iota
	// ClusterDiscovering: no discovery was answered or failed yet.
	ClusterDiscovering
	// ClusterUnknown: no discovery was answered, and nothing is followed.
	ClusterUnknown
	// ClusterLost: the last discovery failed. What is followed is what an earlier one has shown.
	ClusterLost
	// ClusterPartlyKnown: the last discovery was answered in part.
	ClusterPartlyKnown
	// ClusterKnown: the last discovery was complete.
	ClusterKnown
)

func (s ClusterState) String() string {
	switch s {
	case ClusterIdle:
		return "idle"
	case ClusterDiscovering:
		return "discovering"
	case ClusterUnknown:
		return "unknown"
	case ClusterLost:
		return "lost"
	case ClusterPartlyKnown:
		return "partly known"
	case ClusterKnown:
		return "known"
	}
	return fmt.Sprintf("ClusterState(%d)", int(s))
}

// log is how the discovery of a cluster went.
type log struct {
	state ClusterState
	// since is when the state began, and answered when a discovery was answered last; zero before.
	since, answered time.Time
	// err is why the last discovery failed, nil if it did not, and failed when.
	err    error
	failed time.Time
}

func (l *log) note(state ClusterState, err error) {
	now := time.Now()
	if l.state != state || l.since.IsZero() {
		l.state, l.since = state, now
	}
	if l.err = err; err != nil {
		l.failed = now
	}
}

// discovered notes what a discovery has come to.
func (l *log) discovered(found *catalog, err error) {
	switch {
	case err == nil && found.complete():
		l.note(ClusterKnown, nil)
	case err == nil:
		l.note(ClusterPartlyKnown, nil)
	case l.answered.IsZero():
		l.note(ClusterUnknown, err)
	default:
		l.note(ClusterLost, err)
	}
	if err == nil {
		l.answered = time.Now()
	}
}
