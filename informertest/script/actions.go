package script

import (
	"context"
	"errors"
	"time"

	"github.com/rvinformer/informer/internal/leaf/backoff"
)

// action is what a line does. Its error is that of a script that cannot go on.
type action func(ctx context.Context, p *player) error

// settling is longer than a watch that has gone silent may last.
const settling = 40 * time.Minute

// verbs are the actions but for "fault", "informer" and "server". Each reads its arguments.
var verbs = map[string]func(a *args) action{
	"create":     onKeys((*player).create),
	"update":     onKeys((*player).update),
	"delete":     onKeys((*player).remove),
	"recreate":   onKeys((*player).recreate),
	"fill":       parseFill,
	"churn":      parseChurn,
	"other":      parseOther,
	"compact":    parseCompact,
	"backup":     do(func(p *player) { p.backup = p.server.Backup() }),
	"restore":    parseRestore,
	"rewind":     parseRewind,
	"vanish":     do((*player).vanish),
	"return":     do((*player).comeBack),
	"disconnect": do(func(p *player) { p.server.CloseClientConnections() }),
	"heal":       do((*player).heal),

	"handler": parseHandler,
	"hold":    do(func(p *player) { p.behaviour.hold() }),
	"release": do(func(p *player) { p.behaviour.release() }),
	"warm":    simple((*player).warm),
	"start":   parseStart,
	"stop":    parseStop,
	"fuse":    parseFuse,
	"kill":    parseKill,
	"full":    parseFull,

	"audit":     parseAudit,
	"redeliver": parseRedeliver,
	"wait":      parseWait,
	"mark":      do((*player).mark),
	"expect":    parseExpect,
	"settle":    parseSettle,
	"relist":    simple((*player).relist),
	"shard":     parseShard,
}

// do is an action without arguments that cannot fail, simple one that can.
func do(play func(p *player)) func(a *args) action {
	return simple(func(p *player) error {
		play(p)
		return nil
	})
}

func simple(play func(p *player) error) func(a *args) action {
	return func(*args) action {
		return func(_ context.Context, p *player) error { return play(p) }
	}
}

func onKeys(play func(p *player, key string) error) func(a *args) action {
	return func(a *args) action {
		keys := a.keys()
		return func(_ context.Context, p *player) error {
			for _, key := range keys {
				if err := play(p, key); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func parseWait(a *args) action {
	d := a.duration(0)
	return func(ctx context.Context, _ *player) error { return backoff.Sleep(ctx, d) }
}

func parseSettle(a *args) action {
	d := a.duration(settling)
	return func(ctx context.Context, p *player) error { return p.settle(ctx, d) }
}

// awaitDelivered waits until nothing waits for the handler, for a minute at most. Where lists follow
// each other, one may just have been read. It looks at a time that is not that of a full hour, when
// informers try again what did not work.
func (p *player) awaitDelivered(ctx context.Context) error {
	if tellsAll(p.script.server.Dialect) || p.subject.Waiting == nil {
		return nil
	}
	for range 60 {
		if err := backoff.Sleep(ctx, 777*time.Millisecond); err != nil {
			return err
		}
		if p.subject.Waiting() == 0 {
			return nil
		}
	}
	return nil
}

// settle takes all faults away and has the oracle compare what is left.
func (p *player) settle(ctx context.Context, d time.Duration) error {
	if p.run == nil {
		return errors.New("no informer runs that could settle")
	}
	p.heal()
	p.behaviour.set(manners{})
	p.behaviour.release()
	p.stableStore.oneFails.Store(0)
	p.process.light(0)
	if p.process.isDead() {
		return errors.New("the process is dead")
	}
	if err := backoff.Sleep(ctx, d); err != nil {
		return err
	}
	if err := p.awaitDelivered(ctx); err != nil {
		return err
	}
	p.travelled.Store(false)
	p.run.sample()
	var stored map[string]string
	if p.subject.Stored != nil {
		stored = p.subject.Stored()
	}
	p.oracle.Settled(stored)
	p.run.sampleWaiting()
	p.kept.show(p.oracle)
	if p.subject.Idle == nil {
		return nil
	}
	return expectation(func(p *player) error { return p.subject.Idle(!p.lost.Load()) })(ctx, p)
}
