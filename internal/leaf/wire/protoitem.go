package wire

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Field numbers, the same in every Kubernetes type: metadata comes first.
const (
	objectMetadata = 1

	metaName            = 1
	metaNamespace       = 3
	metaUID             = 5
	metaResourceVersion = 6
	metaAnnotations     = 12

	mapKey   = 1
	mapValue = 2
)

// protoIdentity fills in what the message says of itself. Of a repeated field the last one counts,
// and repeated messages merge, as in every decoder. partial: only the beginning of the message is
// there.
func protoIdentity(item *Item, message []byte, partial bool) error {
	object := Message{b: message, partial: partial}
	for object.Next() {
		if object.num != objectMetadata {
			continue
		}
		meta := Message{b: object.Data(), partial: partial}
		for meta.Next() {
			switch meta.num {
			case metaName:
				item.Name = meta.Data()
			case metaNamespace:
				item.Namespace = meta.Data()
			case metaUID:
				item.UID = meta.Data()
			case metaResourceVersion:
				item.ResourceVersion = meta.Data()
			}
		}
		if meta.err != nil {
			return meta.err
		}
	}
	return object.err
}

// protoEndsInitialEvents looks for the annotation that ends a watch-list's initial events.
func protoEndsInitialEvents(message []byte) (ends bool, err error) {
	object := Message{b: message}
	for object.Next() {
		if object.num != objectMetadata {
			continue
		}
		meta := Message{b: object.Data()}
		for meta.Next() {
			if meta.num != metaAnnotations {
				continue
			}
			var key, value []byte
			entry := Message{b: meta.Data()}
			for entry.Next() {
				switch entry.num {
				case mapKey:
					key = entry.Data()
				case mapValue:
					value = entry.Data()
				}
			}
			if entry.err != nil {
				return false, entry.err
			}
			if string(key) == metav1.InitialEventsAnnotationKey {
				ends = string(value) == "true"
			}
		}
		if meta.err != nil {
			return false, meta.err
		}
	}
	return ends, object.err
}

// protoTypeMeta reads a runtime.TypeMeta into two lent slices.
func protoTypeMeta(message []byte, apiVersion, kind *[]byte) error {
	f := Message{b: message}
	for f.Next() {
		switch f.num {
		case typeMetaAPIVersion:
			*apiVersion = f.Data()
		case typeMetaKind:
			*kind = f.Data()
		}
	}
	return f.err
}

// protoItemError is the error of one item whose bytes are known; the fault is somewhere within.
func protoItemError(item *Item, reason error, detail string, size int64) *ItemError {
	return &ItemError{Reason: reason, Detail: detail, Index: item.Index, Offset: item.Offset, At: item.Offset,
		Size: size, Namespace: string(item.Namespace), Name: string(item.Name)}
}

// partialBytes is how much of an item that is too large is looked at for its name, which stands at
// the beginning.
const partialBytes = 4096
