package follower

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/engine/sink"
	"github.com/rvinformer/informer/internal/engine/source"
)

// doubles are the keys under which a list has shown several objects, as a search over many clusters
// does. One of them is kept for as long as lists show it, whatever their order. The zero value has
// none.
type doubles struct {
	keys map[string]*double
	// spared is how many bytes the spares take.
	spared int
}

// double is one of these keys.
type double struct {
	// kept is the object that is delivered.
	kept types.UID
	// shown tells that the generation under way has shown it, and others that it has shown another
	// one.
	shown, others bool
	// spare is another one, until the kept one is shown: it takes its place if that is gone.
	spare *object.Item
	bytes int
}

// maxSpared is how many bytes of spares are held while a list is read. Where there are more, an
// object takes the place of the kept one at once.
const maxSpared = 256 << 10

// of returns that of a key, nil for none.
func (d *doubles) of(key string) *double {
	if d.keys == nil {
		return nil
	}
	return d.keys[key]
}

// leavesOut reports whether an object of a generation is not the kept one of its key.
func (d *doubles) leavesOut(it *object.Item) (kept types.UID, out bool) {
	of := d.of(it.Key)
	switch {
	case of == nil:
		return "", false
	case it.Version.UID == "" || it.Version.UID == of.kept:
		of.shown = true
		d.release(of)
		return "", false
	}
	of.others = true
	if of.shown || of.spare != nil {
		return of.kept, true
	}
	bytes := itemOverhead
	if it.Lent != nil {
		bytes += len(it.Lent.Item.Bytes)
	}
	if d.spared+bytes > maxSpared {
		of.kept, of.shown = types.UID(strings.Clone(string(it.Version.UID))), true
		return "", false
	}
	if own, err := it.Owned(); err == nil {
		of.spare, of.bytes = &own, bytes
		d.spared += bytes
	}
	return of.kept, true
}

// itemOverhead is about what an item takes beside its bytes.
const itemOverhead = 512

func (d *doubles) release(of *double) {
	d.spared -= of.bytes
	of.spare, of.bytes = nil, 0
}

// unread notes that a generation has an object of a key that could not be read. It may be the kept
// one.
func (d *doubles) unread(key string) {
	if of := d.of(key); of != nil {
		of.shown = true
		d.release(of)
	}
}

// note notes that a generation has shown several objects of a key, and reports whether that is new.
func (d *doubles) note(key string, kept types.UID) (first bool) {
	of := d.of(key)
	if first = of == nil; first {
		of = &double{}
		if d.keys == nil {
			d.keys = map[string]*double{}
		}
		d.keys[strings.Clone(key)] = of
	}
	of.kept, of.shown, of.others = types.UID(strings.Clone(string(kept))), true, true
	return first
}

// end ends a generation that was complete. It calls show with each object that takes the place of
// one that is gone, and keep with the key of an object that cannot be read.
func (d *doubles) end(show func(object.Item), keep func(key string)) {
	for key, of := range d.keys {
		switch {
		case of.shown && of.others:
		case of.spare != nil:
			spare := *of.spare
			of.kept = spare.Version.UID
			show(spare)
		case of.others:
			keep(key)
		default:
			delete(d.keys, key)
		}
	}
	d.abandon()
}

// abandon forgets what the generation under way has shown.
func (d *doubles) abandon() {
	for _, of := range d.keys {
		d.release(of)
		of.shown, of.others = false, false
	}
}

// takes reports whether a change that a watch has told is of another object than the kept one of its
// key, and whether it ends the kept one. The others of that key are then to be listed.
func (d *doubles) takes(c *source.Change) (other, ended bool) {
	of := d.of(c.Item.Key)
	switch uid := c.Item.Version.UID; {
	case of == nil:
		return false, false
	case uid != "" && uid != of.kept:
		return true, false
	case c.Event != watch.Deleted:
		return false, false
	}
	d.release(of)
	delete(d.keys, c.Item.Key)
	return false, true
}

// passesOver reports whether a change between initial events is of an object that is not kept.
func (f *Follower) passesOver(c *source.Change) bool {
	other, ended := f.doubles.takes(c)
	if ended {
		f.Relist()
	}
	return other
}

// leaveOut counts an object that is not the kept one of its key. Only the first one of a key is
// reported.
func (f *Follower) leaveOut(it object.Item, kept types.UID, first bool) {
	f.Report.LeaveOut(sink.Twice(it, kept), first)
}

// double handles the error of a generation that has shown another object of a key before.
func (f *Follower) double(it object.Item, err error) (is bool) {
	var twice *sink.TwiceError
	if !errors.As(err, &twice) {
		return false
	}
	f.leaveOut(it, twice.Kept, f.doubles.note(it.Key, twice.Kept))
	return true
}

// endDoubles shows the generation the objects that take the place of others.
func (f *Follower) endDoubles(ctx context.Context, p *pass) {
	f.doubles.end(func(it object.Item) {
		if err := p.generation.Show(ctx, it); err != nil && f.refused(ctx, err) {
			p.keep(it.Key)
		}
	}, p.keep)
}
