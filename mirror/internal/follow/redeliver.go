package follow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/fleet"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// maxKeys is about how many bytes of keys one redelivery has: half of what an informer allows.
	maxKeys = 16 << 10
	// goneTick is how often informers are looked at that have not synced yet.
	goneTick = time.Second
)

// Redeliver has all rows tried again that the database has refused too often. It returns when each is
// written, or has been refused as often again, and says how many there were and are.
func (m *Mirror) Redeliver(ctx context.Context) (before, after int, err error) {
	m.redelivering.Lock()
	defer m.redelivering.Unlock()
	for _, i := range m.informers() {
		letters := i.DeadLetters()
		before += len(letters)
		err = errors.Join(err, redeliver(ctx, i, letters))
		after += len(i.DeadLetters())
	}
	return before, after, err
}

// ServeRedeliver answers a POST when Redeliver has returned.
func (m *Mirror) ServeRedeliver(w http.ResponseWriter, r *http.Request) {
	before, after, err := m.Redeliver(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintf(w, "%s tried again; %d refused now\n", english.Plural(before, "row", ""), after)
}

// redeliverGone has the removals tried again, once after each start of an informer, that the database
// has refused before. Nothing else would have them tried: the object is gone, and cannot change.
func (m *Mirror) redeliverGone(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for f, i := range m.informers() {
			if f.triedGone || !i.HasSynced() {
				continue
			}
			f.triedGone = true
			var gone []informer.DeadLetter
			for _, letter := range i.DeadLetters() {
				if letter.Type == informer.Deleted {
					gone = append(gone, letter)
				}
			}
			m.redelivering.Lock()
			_ = redeliver(ctx, i, gone) // the status has it
			m.redelivering.Unlock()
		}
	}, goneTick)
}

// informers are those that are under way, by their feeds.
func (m *Mirror) informers() map[*feed]informer.ResourceVersionInformer {
	all := map[*feed]informer.ResourceVersionInformer{}
	members := m.members.Members()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, member := range members {
		i, ok := member.Informer().(informer.ResourceVersionInformer)
		if f := m.feeds[targetOf(member.Key())]; ok && f != nil {
			all[f] = i
		}
	}
	return all
}

// targetOf is the target of an informer, as feed.target has it.
func targetOf(key factory.Key) fleet.Target {
	return fleet.Target{Unit: fleet.Unit{Cluster: key.Cluster, Group: key.Variant, Shard: key.Shard}, Resource: key.Resource}
}

// redeliver has an informer deliver the objects of dead letters again.
func redeliver(ctx context.Context, i informer.ResourceVersionInformer, letters []informer.DeadLetter) error {
	for len(letters) > 0 {
		var keys []string
		for size := 0; len(letters) > 0 && size < maxKeys; letters = letters[1:] {
			keys = append(keys, letters[0].Key)
			size += len(letters[0].Key)
		}
		if err := i.Redeliver(ctx, informer.RedeliverOptions{Keys: keys}); err != nil {
			return err
		}
	}
	return nil
}
