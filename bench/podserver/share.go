package podserver

import (
	"sync"

	"github.com/rvinformer/informer/api"
)

// share is the pods of a server that are in a shard. A nil share is all pods.
type share struct {
	// selector is the shard as the client has written it.
	selector string
	pods     []int32
}

// shares are made when they are first asked for: a client reads one in less time than it takes to
// hash all UIDs for each page.
type shares struct {
	mu   sync.Mutex
	made map[string]*share
}

// of returns the pods of a set that a shardSelector of one range asks for.
func (s *shares) of(set Options, selector string) (*share, error) {
	chosen, err := api.ParseShard(selector)
	if err != nil || chosen.IsAll() {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.made[selector]; known != nil {
		return known, nil
	}
	made := &share{selector: selector}
	id := newIdentity()
	for i := range set.Pods {
		if id.set(i, set.Pods); chosen.Includes(string(id[namespaceField]), string(id[uidField])) {
			made.pods = append(made.pods, int32(i))
		}
	}
	if s.made == nil {
		s.made = map[string]*share{}
	}
	s.made[selector] = made
	return made, nil
}

// listed is how many pods a list of the set has.
func (o Options) listed() int {
	if o.share == nil {
		return o.Pods
	}
	return len(o.share.pods)
}

// listedAt is which pod stands at a place of a list.
func (o Options) listedAt(i int) int {
	if o.share == nil {
		return i
	}
	return int(o.share.pods[i])
}

// InShard is how many pods of a server are in a shard.
func (o Options) InShard(selector string) (int, error) {
	var err error
	o.share, err = (&shares{}).of(o, selector)
	return o.listed(), err
}
