package known

import (
	"sync"
)

// Cluster is the identity of the cluster that the known objects are of: the UID of its namespace
// kube-system. It is learned from servers and checkpoints, and is empty until then.
type Cluster struct {
	mu       sync.Mutex
	uid      string
	server   string
	replaced int
}

// Server returns the address at which the cluster was reached last, empty before it was.
func (c *Cluster) Server() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

// Reached notes the address at which the cluster was reached.
func (c *Cluster) Reached(server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server
}

// UID returns the identity, empty if it is not known.
func (c *Cluster) UID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uid
}

// Learn notes the identity, unless uid is empty.
func (c *Cluster) Learn(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uid != "" {
		c.uid = uid
	}
}

// Replace notes that the server is of another cluster than the known objects, whose UID is empty
// if it is not known. That is a gap, which countGap counts first: a caller that reads the new UID
// finds it counted.
func (c *Cluster) Replace(uid string, countGap func()) {
	countGap()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid = uid
	c.replaced++
}

// Replaced returns how often the server was found to be of another cluster, or in doubt of being
// the same.
func (c *Cluster) Replaced() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replaced
}
