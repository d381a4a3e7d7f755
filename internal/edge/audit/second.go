package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/leaf/backoff"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// second is a second list. It tells what has stayed as it was for listPatience.
type second struct {
	// shown has what it shows of the suspects.
	shown map[string]keytable.Version
	// partial tells that it has an object whose key is not known.
	partial bool
	bytes   int64
}

// judgeBySecondList judges the suspects by what two lists show that are listPatience apart: the
// informer, whose watch told nothing meanwhile, cannot be about to take what has stayed as it was. What
// its handler has not acknowledged is waited for, because that was read.
func (p *pass) judgeBySecondList(ctx context.Context) error {
	list, err := p.listAgain(ctx)
	if err != nil {
		return fmt.Errorf("a second list, because the informer has not said that it has acknowledged version %s: %w", p.report.ResourceVersion, err)
	}
	if err := p.Informer.AwaitRead(ctx); err != nil {
		return fmt.Errorf("waiting until the informer has acknowledged what it has read: %w", err)
	}
	for _, s := range p.suspects {
		p.judgeByBoth(s, list)
	}
	p.suspects = nil
	return nil
}

// listAgain lists the server once more.
func (p *pass) listAgain(ctx context.Context) (*second, error) {
	list := &second{shown: make(map[string]keytable.Version, len(p.suspects))}
	for _, s := range p.suspects {
		list.shown[s.key] = keytable.Version{}
	}
	began := time.Now()
	for at := (listwatch.Listing{}); ; {
		first := ""
		page, err := p.Server.Page(ctx, at.Continue, func(it Item) {
			list.look(it)
			if first == "" {
				first = strings.Clone(it.Key)
			}
		})
		switch {
		case err != nil:
			return nil, err
		case rv.Compare(page.ResourceVersion, p.report.ResourceVersion) == rv.Older:
			return nil, fmt.Errorf("it has version %s, and the first one had %s: %w", page.ResourceVersion, p.report.ResourceVersion, api.ErrServerRestored)
		case page.Continue == "":
			return list, nil
		case at.Circular(page.Continue, first):
			return nil, listwatch.ErrCircular
		}
		at = at.Turned(page.Continue, first)
		if p.BytesPerSecond > 0 {
			due := time.Duration(float64(list.bytes) / float64(p.BytesPerSecond) * float64(time.Second))
			if err := backoff.Sleep(ctx, due-time.Since(began)); err != nil {
				return nil, err
			}
		}
	}
}

// unreadable stands for a state that cannot be compared.
var unreadable = keytable.Version{ResourceVersion: "unreadable"}

// look looks at an object of the list.
func (l *second) look(it Item) {
	l.bytes += int64(it.Bytes)
	l.partial = l.partial || it.Key == ""
	if _, suspected := l.shown[it.Key]; !suspected {
		return
	}
	v := cloned(it.Version)
	if it.Unreadable {
		v = unreadable
	}
	l.shown[strings.Clone(it.Key)] = v
}

// judgeByBoth notes whether a suspect differs from what both lists show.
func (p *pass) judgeByBoth(s suspect, list *second) {
	own, has := p.Informer.Get(s.key)
	now := list.shown[s.key]
	switch {
	case now != s.server: // it has changed meanwhile
	case p.isRight(s):
	case has && s.listed():
		p.report.addStale(s.key, s.server, own)
	case has && !p.partial && !list.partial:
		p.report.addSuperfluous(s.key, own)
	case !has:
		p.report.addMissing(s.key, s.server)
	}
}
