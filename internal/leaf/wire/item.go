package wire

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Item is one object as it came off the wire.
//
// Every slice in it is lent: it lives in the reader's buffers and is overwritten by the next call
// of Next or Reset. Copy what is kept longer (string(item.Name), bytes.Clone(item.Bytes)). Nothing
// may be written into it.
type Item struct {
	// Bytes is the object: in JSON its text, in protobuf its message without the k8s envelope. See
	// AppendObject.
	Bytes  []byte
	Format Format

	// Unescaped; empty where the object does not say.
	Namespace, Name, UID, ResourceVersion []byte

	// What the object itself says of its type. Empty for the items of built-in lists: there the
	// list says it.
	APIVersion, Kind []byte

	Offset int64 // of Bytes[0] in the body
	Index  int   // position in the list or the watch, from 0, unreadable ones counted

	// JSON only: the object has a member of that name, whose value may be empty.
	hasAPIVersion, hasKind bool
}

// Clone returns the item with memory of its own, all in one piece.
func (i Item) Clone() Item {
	parts := []*[]byte{&i.Bytes, &i.Namespace, &i.Name, &i.UID, &i.ResourceVersion, &i.APIVersion, &i.Kind}
	size := 0
	for _, part := range parts {
		size += len(*part)
	}
	all := make([]byte, 0, size)
	for _, part := range parts {
		from := len(all)
		all = append(all, *part...)
		*part = all[from:len(all):len(all)]
	}
	return i
}

// ListMeta is what a list says of itself.
type ListMeta struct {
	APIVersion, Kind   string
	ResourceVersion    string
	Continue           string
	RemainingItemCount *int64
	// ShardSelector is the selector of shardInfo: the shard that the server has selected. It is
	// empty for a list without shardInfo.
	ShardSelector string
}

// ItemKind is the kind of the list's items: Pod for a PodList. It is empty for a list of any kind
// ("List"), and for a custom resource that names its list otherwise; the items of both say
// themselves what they are.
func (m ListMeta) ItemKind() string {
	const suffix = "List"
	if n := len(m.Kind) - len(suffix); n > 0 && m.Kind[n:] == suffix {
		return m.Kind[:n]
	}
	return ""
}

// Event is one watch event. It is lent, as its Item is.
type Event struct {
	// One of the five types of apimachinery.
	Type watch.EventType
	// For BOOKMARK an object with little more than a ResourceVersion, for ERROR a Status: Bytes,
	// APIVersion and Kind.
	Item
	// A BOOKMARK that carries k8s.io/initial-events-end: "true".
	InitialEventsEnd bool
}

// Status decodes the Status of an ERROR event.
func (e *Event) Status() (*metav1.Status, error) {
	status := &metav1.Status{}
	var err error
	if e.Format == Protobuf {
		err = status.Unmarshal(e.Bytes)
	} else {
		err = json.Unmarshal(e.Bytes, status)
	}
	if err != nil {
		return nil, fmt.Errorf("wire: decode the Status of an ERROR event: %w", err)
	}
	return status, nil
}

// eventType maps without allocating; "" is no type.
func eventType(b []byte) watch.EventType {
	switch string(b) {
	case string(watch.Added):
		return watch.Added
	case string(watch.Modified):
		return watch.Modified
	case string(watch.Deleted):
		return watch.Deleted
	case string(watch.Bookmark):
		return watch.Bookmark
	case string(watch.Error):
		return watch.Error
	}
	return ""
}
