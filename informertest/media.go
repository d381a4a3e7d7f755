package informertest

import (
	"bufio"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
)

// media is a language of the server and its clients.
type media int

const (
	mediaJSON media = iota
	mediaProtobuf
)

// contentType is the header of a response that is one document.
func (m media) contentType() string {
	if m == mediaProtobuf {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// streamType is the header of a watch.
func (m media) streamType() string {
	if m == mediaProtobuf {
		return runtime.ContentTypeProtobuf + ";stream=watch"
	}
	return runtime.ContentTypeJSON
}

// end is what follows a document.
func (m media) end() string {
	if m == mediaProtobuf {
		return ""
	}
	return "\n"
}

func (m media) status(s *metav1.Status) ([]byte, error) {
	if m == mediaProtobuf {
		return appendEnvelope(nil, s)
	}
	return json.Marshal(s)
}

// event writes one event of a watch, whose object is encoded already.
func (m media) event(out *bufio.Writer, kind watch.EventType, object []byte) error {
	if m != mediaProtobuf {
		_, err := fmt.Fprintf(out, "{\"type\":%q,\"object\":%s}\n", kind, object)
		return err
	}
	// Only the object is in an envelope, the event is not.
	text, err := (&metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		return err
	}
	_, err = protobuf.LengthDelimitedFramer.NewFrameWriter(out).Write(text)
	return err
}
