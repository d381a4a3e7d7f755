package recency

import "sync"

// Coverage tells whether everything up to the newest version that was taken is there. Only then may
// that version be claimed, as one to go on from.
//
// A complete list covers everything, and so does a saved state with a version that was restored.
// Coverage ends when the next list begins, and with a gap: a loss that only a list can repair. The
// zero value covers nothing. It is safe for concurrent use.
type Coverage struct {
	mu    sync.Mutex
	whole bool
	// gaps is the number of gaps when the list began. Each further gap is one that it does not
	// repair.
	gaps int64
}

// Begin notes that a list begins, after so many gaps.
func (c *Coverage) Begin(gaps int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.whole, c.gaps = false, gaps
}

// End notes that the list that began last has ended.
func (c *Coverage) End(complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.whole = complete
}

// Claim returns resourceVersion if everything up to it is there, with that many gaps by now, and
// else nothing. It returns nothing for "0", which a server takes for any version.
func (c *Coverage) Claim(resourceVersion string, gaps int64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.whole || c.gaps != gaps || resourceVersion == "0" {
		return ""
	}
	return resourceVersion
}
