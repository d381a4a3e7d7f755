package informertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jsonCodec writes JSON, byte for byte as a kube-apiserver does.
type jsonCodec struct{ contents }

func (c jsonCodec) object(b []byte, o *object, t taint) ([]byte, error) {
	return c.write(b, o, t, true)
}

// write appends an object. One of a built-in type says its kind only where it stands alone, and not
// in a list.
func (c jsonCodec) write(b []byte, o *object, t taint, alone bool) ([]byte, error) {
	if t.kind == effectGarbage {
		return append(b, garbageJSON[t.n]...), nil
	}
	o, err := t.changed(o, c.resource)
	if err != nil {
		return b, err
	}
	apiVersion, kind := c.kind().ToAPIVersionAndKind()
	switch {
	case c.form == formMetadata:
		metadata, err := o.metadataJSON()
		return fmt.Appendf(b, `{"kind":%q,"apiVersion":%q,"metadata":%s}`, kind, apiVersion, metadata), err
	case c.resource.Custom || !alone:
		return o.appendJSON(b), nil
	}
	b = fmt.Appendf(b, `{"kind":%q,"apiVersion":%q,`, kind, apiVersion)
	begin := len(b)
	b = o.appendJSON(b)
	// The object's own opening brace is already written.
	return append(b[:begin], b[begin+1:]...), nil
}

func (c jsonCodec) bookmark(version string, initialEnd bool) ([]byte, error) {
	apiVersion, kind := c.kind().ToAPIVersionAndKind()
	var metadata []string
	if version != "" {
		metadata = append(metadata, fmt.Sprintf(`"resourceVersion":%q`, version))
	}
	if initialEnd {
		metadata = append(metadata, fmt.Sprintf(`"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey))
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{%s}}`, kind, apiVersion, strings.Join(metadata, ",")), nil
}

// list writes a list item by item, so that no more than one of them is ever held as text.
func (c jsonCodec) list(out *bufio.Writer, p page) error {
	if c.form == formWhole && c.resource.Custom {
		return c.customList(out, p)
	}
	apiVersion, kind := c.listKind().ToAPIVersionAndKind()
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
	metadata := map[string]any{"continue": p.next}
	if p.version != "" {
		metadata["resourceVersion"] = p.version
	}
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
	for i, o := range p.objects {
		text = text[:0]
		if i > 0 {
			text = append(text, ',')
		}
		var err error
		if text, err = c.write(text, o, p.taint(), false); err != nil {
			return err
		}
		// The writer keeps its first error, so this also notices a client that went away.
		if _, err = out.Write(text); err != nil {
			return err
		}
	}
	return out.WriteByte(']')
}
