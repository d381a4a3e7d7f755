package informertest

import (
	"bufio"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jsonCodec writes JSON, byte for byte as a kube-apiserver does.
type jsonCodec struct {
	resource Resource
	form     form
}

func (c jsonCodec) object(b []byte, o *object) ([]byte, error) {
	if c.form == formMetadata {
		metadata, err := o.metadataJSON()
		if err != nil {
			return b, err
		}
		b = append(b, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`...)
		b = append(b, metadata...)
		return append(b, '}'), nil
	}
	if c.resource.Custom {
		return o.appendJSON(b), nil
	}
	b = fmt.Appendf(b, `{"kind":%q,"apiVersion":%q,`, c.resource.Kind, c.resource.apiVersion())
	begin := len(b)
	b = o.appendJSON(b)
	// The object's own opening brace is already written.
	return append(b[:begin], b[begin+1:]...), nil
}

// item appends an object that stands in a list.
func (c jsonCodec) item(b []byte, o *object) ([]byte, error) {
	if c.form == formWhole {
		return o.appendJSON(b), nil
	}
	return c.object(b, o)
}

func (c jsonCodec) bookmark(rv uint64, initialEnd bool) ([]byte, error) {
	kind, apiVersion := c.resource.Kind, c.resource.apiVersion()
	if c.form == formMetadata {
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	annotations := ""
	if initialEnd {
		annotations = fmt.Sprintf(`,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey)
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":%q%s}}`, kind, apiVersion, c.resource.versions.format(rv), annotations), nil
}

// list writes a list item by item, so that no more than one of them is ever held as text.
func (c jsonCodec) list(out *bufio.Writer, p page) error {
	if c.form == formWhole && c.resource.Custom {
		return c.customList(out, p)
	}
	kind, apiVersion := c.resource.ListKind, c.resource.apiVersion()
	if c.form == formMetadata {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	metadata, err := json.Marshal(p.metadata())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":`, kind, apiVersion, metadata)
	if err := c.items(out, p); err != nil {
		return err
	}
	_, err = out.WriteString("}\n")
	return err
}

// customList has the keys of the list and of its metadata sorted, and the continue token even where
// it is empty.
func (c jsonCodec) customList(out *bufio.Writer, p page) error {
	metadata := map[string]any{"resourceVersion": p.versions.format(p.rv), "continue": p.next}
	if p.remaining != nil {
		metadata["remainingItemCount"] = *p.remaining
	}
	if p.shard != "" {
		metadata["shardInfo"] = map[string]any{"selector": p.shard}
	}
	text, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `{"apiVersion":%q,"items":`, c.resource.apiVersion())
	if err := c.items(out, p); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, `,"kind":%q,"metadata":%s}`+"\n", c.resource.ListKind, text)
	return err
}

func (c jsonCodec) items(out *bufio.Writer, p page) error {
	var text []byte
	out.WriteByte('[')
	as := shapes{whole: c.item, mistyped: c.mistypedItem, garbage: c.garbage}
	for i, o := range p.objects {
		text = text[:0]
		if i > 0 {
			text = append(text, ',')
		}
		var err error
		if text, err = p.taint().spoiled(text, c.resource, o, as); err != nil {
			return err
		}
		// The writer keeps its first error, so this also notices a client that went away.
		if _, err = out.Write(text); err != nil {
			return err
		}
	}
	return out.WriteByte(']')
}
