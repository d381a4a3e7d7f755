package objectcache

import "github.com/rvinformer/informer"

// Lookup returns which state of the object of a key can be read; false if there is none. Its
// Waiting is always nil: Status tells how many calls wait for handlers.
func (i *Informer) Lookup(key string) (informer.Belief, bool) {
	version, ok := i.objects.version(key)
	if !ok {
		return informer.Belief{}, false
	}
	state := &informer.AcknowledgedState{ResourceVersion: version.ResourceVersion, UID: version.UID}
	state.ReadAfter, state.ReadBefore = i.setup.Report.Read(version.ResourceVersion)
	return informer.Belief{Acknowledged: state}, true
}
