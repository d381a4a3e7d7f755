package prune

import (
	"encoding/binary"
	"slices"
)

// metaNames are the JSON names of ObjectMeta's fields, by their numbers in
// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
var metaNames = [...][]byte{
	1:  []byte("name"),
	2:  []byte("generateName"),
	3:  []byte("namespace"),
	4:  []byte("selfLink"),
	5:  []byte("uid"),
	6:  []byte("resourceVersion"),
	7:  []byte("generation"),
	8:  []byte("creationTimestamp"),
	9:  []byte("deletionTimestamp"),
	10: []byte("deletionGracePeriodSeconds"),
	11: []byte("labels"),
	12: []byte("annotations"),
	13: []byte("ownerReferences"),
	14: []byte("finalizers"),
	17: []byte("managedFields"),
}

const (
	objectMetadata  = 1 // in every object
	metaLabels      = 11
	metaAnnotations = 12
	entryKey        = 1 // in an entry of a map
)

var metadata = []byte("metadata")

// InProtobuf splits the paths into those for AppendProtobuf and the others,
// which have to be dropped from the decoded object. Of a path within a field of
// the metadata that is no map AppendProtobuf knows that it drops nothing.
func (p Paths) InProtobuf() (these, others Paths) {
	for _, fields := range p {
		if fields[0] == string(metadata) && len(fields) > 1 && isMetaName(fields[1]) {
			these = append(these, fields)
		} else {
			others = append(others, fields)
		}
	}
	return these, others
}

func isMetaName(name string) bool {
	return slices.ContainsFunc(metaNames[1:], func(n []byte) bool { return string(n) == name })
}

// AppendProtobuf appends the protobuf message of one object, without the k8s
// envelope, to dst, without those fields of its metadata that the paths name;
// see InProtobuf for which it can. What is left is as it was, byte for byte, but
// for the length of the metadata. dst must not overlap message. It allocates
// only to grow dst, to where all of message has room.
//
// The message must have an ObjectMeta as its field 1. All objects do, and
// PartialObjectMetadata, but a Status does not. What is not within the metadata
// is not looked at. On an error, a *MalformedError, dst is returned as it was.
func (p Paths) AppendProtobuf(dst, message []byte) ([]byte, error) {
	paths := p.under(0, metadata)
	if len(paths) == 0 {
		return append(dst, message...), nil
	}
	object := protoFields{b: message}
	out, done := slices.Grow(dst, len(message)), 0
	for object.next() {
		if object.num != objectMetadata {
			continue
		}
		meta := protoFields{b: message[:object.pos], pos: object.dataAt()}
		out = append(out, message[done:object.start]...)
		out = appendMetadata(out, &meta, object.start, paths)
		if done = object.pos; meta.err != nil {
			return dst, meta.err
		}
	}
	if object.err != nil {
		return dst, object.err
	}
	return append(out, message[done:]...), nil
}

// appendMetadata appends the field that begins at start, whose message is meta.
func appendMetadata(dst []byte, meta *protoFields, start int, paths Paths) []byte {
	head := len(dst)
	dst = append(dst, meta.b[start:meta.pos]...)
	body, was := len(dst), len(meta.b)-meta.pos
	dst = appendMeta(dst, meta, paths)
	if n := len(dst) - body; n < was {
		return relength(dst, head, body)
	}
	return dst
}

// relength writes a new tag and length of the metadata, whose old ones are
// dst[head:body]. The new length takes no more bytes.
func relength(dst []byte, head, body int) []byte {
	const tag = objectMetadata<<3 | lengthDelimited
	prefix := binary.AppendUvarint(append(make([]byte, 0, 1+binary.MaxVarintLen64), tag), uint64(len(dst)-body))
	return slices.Replace(dst, head, body, prefix...)
}

// appendMeta appends the fields of an ObjectMeta that no path names.
func appendMeta(dst []byte, meta *protoFields, paths Paths) []byte {
	done := meta.pos
	for meta.next() {
		if isDropped(meta, paths) {
			dst = append(dst, meta.b[done:meta.start]...)
			done = meta.pos
		}
	}
	return append(dst, meta.b[done:]...)
}

// isDropped says whether a path names the field, or the entry of a map that it
// is.
func isDropped(meta *protoFields, paths Paths) bool {
	if int(meta.num) >= len(metaNames) || metaNames[meta.num] == nil {
		return false
	}
	within := paths.under(1, metaNames[meta.num])
	if len(within) == 0 || within.end(2) {
		return len(within) > 0
	}
	if meta.num != metaLabels && meta.num != metaAnnotations {
		return false
	}
	return within.under(2, meta.entryKey()).end(3)
}
