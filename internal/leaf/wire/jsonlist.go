package wire

import (
	"io"
	"strconv"

	"github.com/rvinformer/informer/api"
)

// jsonList reads {"kind":…,"apiVersion":…,"metadata":{…},"items":[…]}, keys in any order.
type jsonList struct {
	jsonScan
	options Options

	place listPlace
	err   error // ended the body
	meta  ListMeta
	index int // of the next item

	sawItems bool // the key, whatever its value
}

// listPlace is where Next goes on.
type listPlace uint8

const (
	atStart     listPlace = iota
	atFirstKey            // behind the list's '{'
	atKey                 // behind a value of the list
	atFirstItem           // behind '['
	atItem                // behind an item
)

func newJSONList(body io.Reader, o Options) *jsonList {
	l := &jsonList{options: o}
	l.Reset(body)
	return l
}

func (l *jsonList) Reset(body io.Reader) {
	l.forget()
	l.restart(body, l.options)
	l.place, l.err, l.meta, l.index, l.sawItems = atStart, nil, ListMeta{}, 0, false
}

func (l *jsonList) Meta() ListMeta { return l.meta }

func (l *jsonList) Next() (Item, error) {
	l.forget()
	for l.err == nil {
		switch l.place {
		case atStart:
			l.start()
		case atFirstKey, atKey:
			l.envelope()
		case atFirstItem, atItem:
			if c, ok := l.peek(); !ok {
				l.err = l.ended(l.index)
			} else if c == ']' {
				l.leave()
				l.place = atKey
			} else if l.place == atFirstItem || l.expect(',', "',' or ']' expected behind an item") {
				return l.item()
			} else {
				l.err = l.ended(l.index)
			}
		}
	}
	return Item{}, l.err
}

func (l *jsonList) start() {
	switch c, ok := l.peek(); {
	case !ok && l.stop == io.EOF:
		l.err = l.bodyError(ErrEmptyBody, "", 0)
	case !ok:
		l.err = l.ended(0)
	case c != '{':
		l.err = l.bodyError(api.ErrNotList, "'{' expected", 0)
	default:
		l.enter()
		l.place = atFirstKey
	}
}

// envelope reads one member of the list, up to the first item if it is the items.
func (l *jsonList) envelope() {
	f, ok := l.member(l.place == atFirstKey)
	l.place = atKey
	if ok {
		switch f {
		case fieldEnd:
			l.finish()
			return
		case fieldAPIVersion:
			ok = l.string(&l.meta.APIVersion)
		case fieldKind:
			ok = l.string(&l.meta.Kind)
		case fieldMetadata:
			ok = l.listMeta()
		case fieldItems:
			ok = l.items()
		default:
			ok = l.skip()
		}
	}
	switch {
	case !ok || l.fault != nil:
		l.err = l.ended(l.index)
	case l.meta.Kind == "Status":
		l.err = l.bodyError(ErrStatus, "", l.index)
	}
}

func (l *jsonList) items() bool {
	if l.index > 0 {
		// Other decoders let the later ones replace the earlier, which were handed over long ago.
		return l.broken("items for a second time")
	}
	l.sawItems = true
	if l.buf[l.pos] != '[' {
		return l.null("an array of items expected")
	}
	l.enter()
	l.place = atFirstItem
	return true
}

// string reads a string outside the items; null leaves dst alone.
func (l *jsonList) string(dst *string) bool {
	var v span
	l.keep = l.pos
	ok := l.text(&v)
	if ok && v.to > 0 {
		s, valid := l.copyText(v)
		if *dst = s; !valid {
			l.note("invalid string")
		}
	}
	l.keep = -1
	return ok
}

func (l *jsonList) listMeta() bool {
	if l.buf[l.pos] != '{' {
		return l.null("an object expected as metadata")
	}
	return l.members(func(f field) bool {
		switch f {
		case fieldResourceVersion:
			return l.string(&l.meta.ResourceVersion)
		case fieldContinue:
			return l.string(&l.meta.Continue)
		case fieldRemainingItemCount:
			return l.remaining()
		case fieldShardInfo:
			return l.shardInfo()
		}
		return l.skip()
	})
}

// shardInfo reads the object of that name. Null counts as none.
func (l *jsonList) shardInfo() bool {
	if l.buf[l.pos] != '{' {
		l.meta.ShardSelector = ""
		return l.null("an object expected as shardInfo")
	}
	return l.members(func(f field) bool {
		if f == fieldSelector {
			return l.string(&l.meta.ShardSelector)
		}
		return l.skip()
	})
}

func (l *jsonList) remaining() bool {
	l.keep = l.pos
	isNull := l.buf[l.pos] == 'n'
	ok := l.skip()
	if ok {
		l.meta.RemainingItemCount = nil
		if !isNull {
			n, err := strconv.ParseInt(string(l.buf[l.keep:l.pos]), 10, 64)
			if err != nil {
				l.note("an integer expected as remainingItemCount")
			}
			l.meta.RemainingItemCount = &n
		}
	}
	l.keep = -1
	return ok
}

// finish looks at what follows the list: only white space may. Reading up to the end also lets HTTP
// use the connection again.
func (l *jsonList) finish() {
	_, more := l.peek()
	switch {
	case more:
		l.err = l.bodyError(api.ErrMalformed, "more data behind the list", l.index)
	case l.stop != io.EOF:
		l.err = l.ended(l.index)
	case !l.sawItems:
		l.err = l.bodyError(api.ErrNotList, "an object without items", 0)
	default:
		l.err = io.EOF
	}
}

// item reads the item that begins at the next byte that is no space.
func (l *jsonList) item() (Item, error) {
	l.place = atItem
	c, ok := l.peek()
	if ok && (c == ',' || c == ']' || c == '}') {
		ok = l.broken("an item expected")
	}
	if !ok {
		l.err = l.ended(l.index)
		return Item{}, l.err
	}
	floor := l.depth
	l.begin(true)
	item := Item{Format: JSON, Index: l.index, Offset: l.unit}
	if !l.object() && !(l.wrecked && l.resync(floor)) {
		l.err = l.ended(l.index)
		return Item{}, l.err
	}
	l.index++
	l.identify(&item)
	err := l.itemError(&item, false)
	if err == nil {
		item.Bytes = l.lend(l.keep, l.pos)
	} else {
		item = Item{}
	}
	l.begin(false)
	return item, err
}
