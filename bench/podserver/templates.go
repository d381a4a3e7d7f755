package podserver

import "context"

// templates are pods that are made from templates.
type templates struct {
	*form
	set Options
}

func (t templates) initial(ctx context.Context, w *counted) error {
	err := t.send(ctx, w, added, 0, t.set.listed(), 0)
	w.flush()
	return err
}

func (t templates) changes(ctx context.Context, w *counted, known, to int) error {
	if known >= to {
		return nil
	}
	err := t.send(ctx, w, modified, known, to, 0)
	w.flush()
	return err
}

// send sends pods or changes of the set, those with numbers from from up to to. It leaves out the
// last behind bytes, which are the separator after the last item of a list.
func (t templates) send(ctx context.Context, w *counted, p part, from, to, behind int) error {
	if few := t.few(p, from, to); few != nil {
		_, err := w.Write(few[:max(0, len(few)-behind)])
		return err
	}
	tiles := t.tilesOf[p].Get().(*tiles)
	defer t.tilesOf[p].Put(tiles)
	for ctx.Err() == nil {
		some := min(to-from, tiles.capacity())
		rendered := tiles.render(some, t.set.identities(p, from))
		if from += some; from == to {
			_, err := w.Write(rendered[:max(0, len(rendered)-behind)])
			return err
		}
		if _, err := w.Write(rendered); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// identities returns a function that fills in the identity of pod, or change, number from+k.
func (o Options) identities(p part, from int) func(id *identity, k int) {
	if p == modified {
		return func(id *identity, k int) { o.identifyChange(id, from+k) }
	}
	return func(id *identity, k int) { o.identify(id, from+k) }
}
