package wire

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/rvinformer/informer/api"
)

// protoList reads k8s\x00, then a runtime.Unknown field by field; its raw field, the list message,
// is walked in the stream, too, so that only one item is ever held.
type protoList struct {
	window
	options Options
	limit   int64

	place protoPlace
	err   error // ended the body
	meta  ListMeta
	index int   // of the next item
	unit  int64 // where the last item ended; unknown fields may take limit bytes from here

	sawRaw bool
	rawEnd int64 // inList: where the list message ends. It may begin anywhere in the envelope, but only once
}

// protoPlace is where Next goes on.
type protoPlace uint8

const (
	beforePrefix protoPlace = iota
	inEnvelope              // between the fields of runtime.Unknown
	inList                  // between the fields of the list
)

// Field numbers, the same in every list type.
const (
	listMetadata = 1
	listItems    = 2

	listMetaResourceVersion    = 2
	listMetaContinue           = 3
	listMetaRemainingItemCount = 4
	listMetaShardInfo          = 5
	listMetaSelfLink           = 1

	shardInfoSelector = 1
)

func newProtoList(body io.Reader, o Options) *protoList {
	l := &protoList{options: o, limit: int64(o.MaxItemBytes)}
	l.Reset(body)
	return l
}

func (l *protoList) Reset(body io.Reader) {
	l.release()
	l.reset(body, l.options)
	l.place, l.err, l.meta, l.index, l.unit, l.sawRaw, l.rawEnd = beforePrefix, nil, ListMeta{}, 0, 0, false, 0
}

func (l *protoList) Meta() ListMeta { return l.meta }

func (l *protoList) Next() (Item, error) {
	l.release()
	for l.err == nil {
		switch l.place {
		case beforePrefix:
			l.prefix()
		case inEnvelope:
			l.envelope()
		case inList:
			if l.at() == l.rawEnd {
				l.place = inEnvelope
				continue
			}
			if length, isItem := l.listField(); isItem {
				return l.item(length)
			}
		}
	}
	return Item{}, l.err
}

func (l *protoList) malformed(detail string) bool {
	l.err = l.bodyError(api.ErrMalformed, detail, l.index)
	return false
}

func (l *protoList) prefix() {
	if !l.need(len(protoPrefix)) {
		switch have := l.buf[l.pos:l.end]; {
		case l.stop != io.EOF:
			l.err = l.cut(0)
		case len(have) == 0:
			l.err = l.bodyError(ErrEmptyBody, "", 0)
		case !strings.HasPrefix(string(protoPrefix), string(have)):
			l.err = l.bodyError(api.ErrNotList, "no k8s prefix", 0)
		default:
			l.err = l.cut(0)
		}
		return
	}
	if string(l.buf[l.pos:l.pos+len(protoPrefix)]) != string(protoPrefix) {
		l.err = l.bodyError(api.ErrNotList, "no k8s prefix", 0)
		return
	}
	l.pos += len(protoPrefix)
	l.unit = l.at()
	l.place = inEnvelope
}

// envelope reads one field of runtime.Unknown. The list message is only begun.
func (l *protoList) envelope() {
	if l.pos == l.end && !l.fill() {
		l.finish()
		return
	}
	num, typ, ok := l.tag(math.MaxInt64)
	if !ok {
		return
	}
	switch num {
	case unknownTypeMeta, unknownRaw, unknownContentEncoding, unknownContentType:
	default:
		l.skipField(typ, math.MaxInt64)
		return
	}
	if typ != lengthDelimited {
		l.malformed(errProtoType.Error())
		return
	}
	length, ok := l.length(math.MaxInt64)
	switch {
	case !ok:
	case num == unknownTypeMeta:
		l.typeMeta(length)
	case num != unknownRaw:
		l.pass(length)
	case l.sawRaw:
		// The later one would replace the earlier, which was handed over long ago.
		l.malformed("two lists in one envelope")
	default:
		l.sawRaw, l.rawEnd, l.place = true, l.at()+length, inList
	}
}

func (l *protoList) typeMeta(length int64) {
	b, ok := l.small(length)
	if !ok {
		return
	}
	apiVersion, kind := []byte(l.meta.APIVersion), []byte(l.meta.Kind)
	if err := protoTypeMeta(b, &apiVersion, &kind); err != nil {
		l.malformed(err.Error())
		return
	}
	l.meta.APIVersion, l.meta.Kind = string(apiVersion), string(kind)
	l.pos += len(b)
	switch {
	case l.meta.Kind == "Status":
		l.err = l.bodyError(ErrStatus, "", l.index)
	case l.meta.Kind == "List" || l.meta.Kind != "" && !strings.HasSuffix(l.meta.Kind, "List"):
		// Any message looks like a list to some degree: field 2 of a Pod is its spec. And the items
		// of a v1 List are no objects but RawExtensions.
		l.err = l.bodyError(api.ErrNotList, fmt.Sprintf("kind is %.64q", l.meta.Kind), l.index)
	}
}

// finish judges a body that ended between two fields of the envelope. Without its last two fields,
// which are empty, an envelope is as good; without a list or a kind it is not.
func (l *protoList) finish() {
	switch {
	case l.stop != io.EOF || !l.sawRaw:
		l.err = l.cut(l.index)
	case l.meta.Kind == "" || l.meta.APIVersion == "":
		l.err = l.bodyError(api.ErrNotList, "no kind or no apiVersion", l.index)
	default:
		l.err = io.EOF
	}
}

// listField reads one field of the list message; an item only up to its length.
func (l *protoList) listField() (length int64, isItem bool) {
	num, typ, ok := l.tag(l.rawEnd)
	if !ok {
		return 0, false
	}
	if num != listMetadata && num != listItems {
		l.skipField(typ, l.rawEnd)
		return 0, false
	}
	if typ != lengthDelimited {
		return 0, l.malformed(errProtoType.Error())
	}
	if length, ok = l.length(l.rawEnd); !ok {
		return 0, false
	}
	if num == listItems {
		return length, true
	}
	l.listMeta(length)
	return 0, false
}

func (l *protoList) listMeta(length int64) {
	b, ok := l.small(length)
	if !ok {
		return
	}
	f := Message{b: b}
	for f.Next() {
		switch f.num {
		case listMetaResourceVersion:
			l.meta.ResourceVersion = string(f.Data())
		case listMetaContinue:
			l.meta.Continue = string(f.Data())
		case listMetaRemainingItemCount:
			if f.typ != varint {
				f.err = errProtoType
			}
			n := int64(f.n)
			l.meta.RemainingItemCount = &n
		case listMetaShardInfo:
			info := Message{b: f.Data()}
			for info.Next() {
				if info.num == shardInfoSelector {
					l.meta.ShardSelector = string(info.Data())
				}
			}
			if info.err != nil {
				f.err = info.err
			}
		case listMetaSelfLink:
			f.Data()
		}
	}
	if f.err != nil {
		l.malformed(f.err.Error())
		return
	}
	l.pos += len(b)
}

// item hands over the message of the given length at pos, or passes it.
func (l *protoList) item(length int64) (Item, error) {
	item := Item{Format: Protobuf, Index: l.index, Offset: l.at()}
	if length > l.limit*skipFactor {
		l.err = l.bodyError(api.ErrEndless, fmt.Sprintf("an item of %d bytes", length), l.index)
		return Item{}, l.err
	}
	if length > l.limit {
		if !l.need(int(min(length, partialBytes))) {
			l.err = l.cut(l.index)
			return Item{}, l.err
		}
		_ = protoIdentity(&item, l.buf[l.pos:l.pos+int(min(length, partialBytes))], true) // as far as it goes
		err := protoItemError(&item, api.ErrTooLarge, "", length)
		if !l.discard(length) {
			l.err = l.cut(l.index)
			return Item{}, l.err
		}
		l.index++
		l.unit = l.at()
		return Item{}, err
	}
	if !l.need(int(length)) {
		l.err = l.cut(l.index)
		return Item{}, l.err
	}
	l.index++
	item.Bytes = l.lend(l.pos, l.pos+int(length))
	l.pos += int(length)
	l.unit = l.at()
	if err := protoIdentity(&item, item.Bytes, false); err != nil {
		return Item{}, protoItemError(&item, api.ErrMalformed, err.Error(), length)
	}
	if len(item.Name) == 0 {
		return Item{}, protoItemError(&item, ErrNoName, "", length)
	}
	return item, nil
}

// small holds a field outside the items, at pos, within the limit.
func (l *protoList) small(length int64) ([]byte, bool) {
	if !l.mayPass(length) {
		return nil, false
	}
	if !l.need(int(length)) {
		l.err = l.cut(l.index)
		return nil, false
	}
	return l.buf[l.pos : l.pos+int(length)], true
}

// tag reads a field's tag. end is where the message ends.
func (l *protoList) tag(end int64) (int32, wireType, bool) {
	tag, ok := l.uvarint(end)
	num, typ := int32(tag>>3), wireType(tag&7)
	if ok && (num <= 0 || typ == groupEnd || typ > fixed32) {
		return 0, 0, l.malformed(errProtoTag.Error())
	}
	return num, typ, ok
}

// length reads the length of a field, which must lie within its message.
func (l *protoList) length(end int64) (int64, bool) {
	v, ok := l.uvarint(end)
	if ok && v > uint64(end-l.at()) {
		return 0, l.malformed(errProtoCut.Error())
	}
	return int64(v), ok
}

func (l *protoList) uvarint(end int64) (v uint64, ok bool) {
	for shift := 0; shift < 64; shift += 7 {
		if l.at() >= end {
			return 0, l.malformed(errProtoCut.Error())
		}
		if l.pos == l.end && !l.fill() {
			l.err = l.cut(l.index)
			return 0, false
		}
		c := l.buf[l.pos]
		l.pos++
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			return v, true
		}
	}
	return 0, l.malformed(errProtoVarint.Error())
}

// skipField passes a field that is not asked for, groups included, without holding it.
func (l *protoList) skipField(typ wireType, end int64) {
	for depth := 0; ; {
		ok := true
		switch typ {
		case varint:
			if _, ok = l.uvarint(end); ok {
				ok = l.mayPass(0)
			}
		case fixed64:
			ok = l.passWithin(8, end)
		case fixed32:
			ok = l.passWithin(4, end)
		case lengthDelimited:
			var length int64
			if length, ok = l.length(end); ok {
				ok = l.pass(length)
			}
		case groupStart:
			depth++
		case groupEnd:
			depth--
		default:
			ok = l.malformed(errProtoTag.Error())
		}
		if !ok || depth == 0 || !l.mayPass(0) {
			return
		}
		tag, ok := l.uvarint(end)
		if !ok {
			return
		}
		typ = wireType(tag & 7)
	}
}

func (l *protoList) passWithin(n, end int64) bool {
	if n > end-l.at() {
		return l.malformed(errProtoCut.Error())
	}
	return l.pass(n)
}

func (l *protoList) pass(n int64) bool {
	if !l.mayPass(n) {
		return false
	}
	if !l.discard(n) {
		l.err = l.cut(l.index)
		return false
	}
	return true
}

// mayPass: n more bytes outside the items are within the limit.
func (l *protoList) mayPass(n int64) bool {
	if l.at()-l.unit+n > l.limit {
		l.err = l.bodyError(errBetween, "", l.index)
		return false
	}
	return true
}
