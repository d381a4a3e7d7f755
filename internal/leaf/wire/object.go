package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// AppendObject appends the item to dst as an object of its own, which any decoder of its format
// takes: in JSON with apiVersion and kind filled in where the item does not say them itself, in
// protobuf inside the k8s envelope. For the items of a list pass what Meta says: APIVersion and
// ItemKind(). It does not allocate if dst has room.
func (item *Item) AppendObject(dst []byte, apiVersion, kind string) []byte {
	if item.Format == Protobuf {
		return item.appendProto(dst, apiVersion, kind)
	}
	return item.appendJSON(dst, apiVersion, kind)
}

// appendJSON puts absent keys in front. A key that is there but empty (or null) would win over one
// in front of it, so then the filled one goes behind: of repeated keys the last counts.
func (item *Item) appendJSON(dst []byte, apiVersion, kind string) []byte {
	needKind := len(item.Kind) == 0 && kind != ""
	needVersion := len(item.APIVersion) == 0 && apiVersion != ""
	text := item.Bytes
	if !needKind && !needVersion || len(text) < 2 {
		return append(dst, text...)
	}
	dst = append(dst, '{')
	if needKind && !item.hasKind {
		dst = appendQuoted(append(dst, `"kind":`...), kind)
		dst = append(dst, ',')
	}
	if needVersion && !item.hasAPIVersion {
		dst = appendQuoted(append(dst, `"apiVersion":`...), apiVersion)
		dst = append(dst, ',')
	}
	body := bytes.TrimSpace(text[1 : len(text)-1])
	if len(body) == 0 && dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1] // only a bookmark can be {}
	}
	dst = append(dst, body...)
	if needKind && item.hasKind {
		dst = appendQuoted(append(dst, `,"kind":`...), kind)
	}
	if needVersion && item.hasAPIVersion {
		dst = appendQuoted(append(dst, `,"apiVersion":`...), apiVersion)
	}
	return append(dst, '}')
}

// The k8s envelope is runtime.Unknown behind a magic number.
var protoPrefix = []byte("k8s\x00")

// Field numbers of the envelope, all length-delimited.
const (
	unknownTypeMeta        = 1
	unknownRaw             = 2
	unknownContentEncoding = 3
	unknownContentType     = 4

	typeMetaAPIVersion = 1
	typeMetaKind       = 2
)

// appendProto writes the envelope as apimachinery's serializer does, byte for byte.
func (item *Item) appendProto(dst []byte, apiVersion, kind string) []byte {
	if len(item.APIVersion) > 0 {
		apiVersion = ""
	}
	if len(item.Kind) > 0 {
		kind = ""
	}
	// One of each pair is empty.
	versionLen, kindLen := len(apiVersion)+len(item.APIVersion), len(kind)+len(item.Kind)
	dst = append(dst, protoPrefix...)
	dst = appendTag(dst, unknownTypeMeta, 2+varintLen(versionLen)+versionLen+varintLen(kindLen)+kindLen)
	dst = append(append(appendTag(dst, typeMetaAPIVersion, versionLen), apiVersion...), item.APIVersion...)
	dst = append(append(appendTag(dst, typeMetaKind, kindLen), kind...), item.Kind...)
	dst = append(appendTag(dst, unknownRaw, len(item.Bytes)), item.Bytes...)
	dst = appendTag(dst, unknownContentEncoding, 0)
	return appendTag(dst, unknownContentType, 0)
}

// appendTag begins a length-delimited field below 16.
func appendTag(dst []byte, field byte, length int) []byte {
	return binary.AppendUvarint(append(dst, field<<3|byte(lengthDelimited)), uint64(length))
}

func varintLen(v int) int { return (bits.Len64(uint64(v)|1) + 6) / 7 }

// envelopeEnd is what appendProto writes behind the message: two fields of two bytes, both empty.
const envelopeEnd = 4

// MessageIn returns where in an object in protobuf, as AppendObject makes it, its message of the
// given length is.
func MessageIn(object []byte, length int) (from, to int) {
	to = len(object) - envelopeEnd
	return to - length, to
}
