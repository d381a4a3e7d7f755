package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/leaf/backoff"
)

// object is the next state of an object. It differs from all others in its metadata, so that every
// form shows it.
func (p *player) object(key string) *unstructured.Unstructured {
	namespace, name, _ := strings.Cut(key, "/")
	state := p.states.Add(1)
	obj := &unstructured.Unstructured{}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetAnnotations(map[string]string{"state": strconv.FormatInt(state, 10)})
	return obj
}

func (p *player) create(key string) error {
	_, err := p.server.Create(pods, p.object(key))
	return err
}

func (p *player) update(key string) error {
	_, err := p.server.Update(pods, p.object(key))
	return err
}

func (p *player) remove(key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	return p.server.Delete(pods, namespace, name)
}

func (p *player) recreate(key string) error {
	if err := p.remove(key); err != nil {
		return err
	}
	return p.create(key)
}

// randomKey is the n-th key of those that churn writes.
func randomKey(n int) string { return fmt.Sprintf("ns%d/pod-%d", n%3, n) }

func parseFill(a *args) action {
	n := a.count()
	return func(ctx context.Context, p *player) error {
		for i := range n {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := p.create(randomKey(i)); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		return nil
	}
}

func parseChurn(a *args) action {
	n, keys, every, seed := a.count(), a.namedCount("keys", 30), a.namedDuration("every", 0), a.namedCount("seed", 0)
	if keys == 0 {
		a.fail(errors.New("keys=0 leaves nothing to write"))
	}
	return func(ctx context.Context, p *player) error {
		d := newDice(uint64(seed))
		for range n {
			if every > 0 {
				if err := backoff.Sleep(ctx, d.duration(every)); err != nil {
					return err
				}
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := p.touch(d, randomKey(d.n(keys))); err != nil {
				return err
			}
		}
		return nil
	}
}

// touch creates an object that is not there; others are updated, deleted, or deleted and created
// again.
func (p *player) touch(d *dice, key string) error {
	how := d.n(5)
	if p.vanished {
		return nil
	}
	namespace, name, _ := strings.Cut(key, "/")
	_, err := p.server.Get(pods, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return p.create(key)
	case err != nil:
		return err
	case how == 0:
		return p.remove(key)
	case how == 1:
		return p.recreate(key)
	}
	return p.update(key)
}

func parseOther(a *args) action {
	n := a.count()
	return func(ctx context.Context, p *player) error {
		for range n {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := p.touchOther(); err != nil {
				return err
			}
		}
		return nil
	}
}

// touchOther writes an object of another resource.
func (p *player) touchOther() error {
	_, err := p.server.Create(configMaps, p.object(fmt.Sprintf("other/%d", p.states.Add(1))))
	return err
}

// usualDowntime is how long a server is away that is restored: that cannot be done while it serves.
const usualDowntime = 10 * time.Second

// restart has the server away, and something done to it meanwhile.
func (p *player) restart(ctx context.Context, downtime time.Duration, do func()) error {
	if downtime > 0 {
		up := p.server.Inject(informertest.Fault{Effect: informertest.Refuse()})
		defer up()
	}
	if err := backoff.Sleep(ctx, downtime/2); err != nil {
		return err
	}
	p.travelled.Store(true)
	p.travels.Add(1)
	do()
	p.endRestoring()
	return backoff.Sleep(ctx, downtime/2)
}

func parseRestore(a *args) action {
	downtime := a.namedDuration("down", usualDowntime)
	return func(ctx context.Context, p *player) error {
		if p.backup == nil {
			return errors.New("there is no backup")
		}
		return p.restart(ctx, downtime, func() { p.server.Restore(p.backup) })
	}
}

func parseRewind(a *args) action {
	n, downtime := a.count(), a.namedDuration("down", usualDowntime)
	return func(ctx context.Context, p *player) error {
		rv, err := strconv.Atoi(p.server.ResourceVersion())
		if err != nil {
			return fmt.Errorf("the server's versions are no numbers: %w", err)
		}
		return p.restart(ctx, downtime, func() { p.server.SetResourceVersion(uint64(max(1, rv-n))) })
	}
}

// vanish takes the resource away, with its objects.
func (p *player) vanish() {
	p.server.RemoveResource(pods)
	p.vanished = true
}

func (p *player) comeBack() {
	for _, r := range informertest.DefaultResources() {
		if r.GroupVersionResource == pods {
			p.server.AddResource(r)
		}
	}
	p.vanished = false
}

// relist leaves an informer nothing but a list: it has seen no version, not in a bookmark either,
// that the server still knows.
func (p *player) relist() error {
	heal := p.server.Inject(informertest.Fault{Effect: informertest.Refuse()})
	defer heal()
	if err := p.touchOther(); err != nil {
		return err
	}
	p.server.Compact()
	p.lost.Store(false)
	p.unread.Store(false)
	return nil
}

func parseCompact(a *args) action {
	odds := a.namedCount("odds", 0)
	return func(_ context.Context, p *player) error {
		if odds == 0 {
			p.server.Compact()
		}
		p.oblivion.Store(int64(odds))
		return nil
	}
}

// forget leaves no version but the newest one, which is newer than any that was seen.
func (p *player) forget() {
	_ = p.touchOther() // it has a name of its own
	p.server.Compact()
}

// heal takes all faults away.
func (p *player) heal() {
	p.oblivion.Store(0)
	p.server.Heal()
	p.behind.Store(false)
}
