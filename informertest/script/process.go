package script

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// errDead is what a dead process gets; it is never shown.
var errDead = errors.New("the process is dead")

// process is what a program that is killed loses.
type process struct {
	*player
	storage *informer.ResourceVersionStorage
	hasRun  bool          // a run of it has begun; of the goroutine that plays the script
	died    chan struct{} // closed when it is killed

	mu   sync.Mutex
	dead bool
	fuse int // steps until it is killed; 0: never
	// unsaved: the last save of the checkpoint has failed, in this run or, where this one had
	// nothing to save, before.
	unsaved bool
}

func (p *player) newProcess() *process {
	return &process{player: p, storage: informer.NewResourceVersionStorage(), died: make(chan struct{})}
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// burn is one step of a process. It is false once the process is dead.
func (p *process) burn() (alive bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fuse > 0 {
		if p.fuse--; p.fuse == 0 {
			p.dieLocked()
		}
	}
	return !p.dead
}

// ifAlive does what a process that is dead does not; it is not killed meanwhile.
func (p *process) ifAlive(do func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		do()
	}
	return !p.dead
}

// tried notes what has become of a save.
func (p *process) tried(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unsaved = err != nil
}

// stopped tells the oracle that a run is over, unless the process has died before that. What was
// told since the last checkpoint may come again where that could not be saved.
func (p *process) stopped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.oracle.Stopped(p.unsaved)
	}
}

func (p *process) light(fuse int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fuse = fuse
}

func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dieLocked()
}

func (p *process) dieLocked() {
	if !p.dead {
		p.dead = true
		p.oracle.Stopped(true)
		close(p.died)
	}
}

var typeNames = map[informer.EventType]string{
	informer.Added: "added", informer.Updated: "updated", informer.Deleted: "deleted", informer.Synced: "synced",
}

func keyOf(obj interface{}) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return key
}

// sameVersion is how client-go tells that nothing has changed.
func sameVersion(oldObj, newObj interface{}) bool {
	before, err := meta.Accessor(oldObj)
	if err != nil {
		return false
	}
	after, err := meta.Accessor(newObj)
	return err == nil && before.GetResourceVersion() == after.GetResourceVersion()
}
