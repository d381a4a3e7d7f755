package informertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// form is what a client wants to see of the objects.
type form int

const (
	formWhole    form = iota
	formMetadata      // PartialObjectMetadata
)

// negotiate picks the form of the answer from an Accept header. Only JSON is spoken; the clauses are tried in the order
// in which the client wrote them.
func negotiate(accept string, isList bool) (form, error) {
	if strings.TrimSpace(accept) == "" {
		return formWhole, nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(clause)
		if err != nil || media != "application/json" && media != "application/*" && media != "*/*" {
			continue
		}
		metadataKind := "PartialObjectMetadata"
		if isList {
			metadataKind = "PartialObjectMetadataList"
		}
		switch as := params["as"]; {
		case as == "":
			return formWhole, nil
		case as == metadataKind && params["g"] == metav1.GroupName && params["v"] == "v1":
			return formMetadata, nil
		}
	}
	return formWhole, notAcceptable(accept)
}

// codec writes the objects of one resource as one client wants to see them.
type codec struct {
	resource Resource
	form     form
}

// object appends an object that stands on its own: answered to a get, or inside a watch event.
func (c codec) object(b []byte, o *object) ([]byte, error) {
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
func (c codec) item(b []byte, o *object) ([]byte, error) {
	if c.form == formWhole {
		return o.appendJSON(b), nil
	}
	return c.object(b, o)
}

// bookmark is the object of a BOOKMARK event; initialEnd marks the one that ends the initial events of a watch-list.
func (c codec) bookmark(rv uint64, initialEnd bool) []byte {
	kind, apiVersion := c.resource.Kind, c.resource.apiVersion()
	if c.form == formMetadata {
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	annotations := ""
	if initialEnd {
		annotations = fmt.Sprintf(`,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey)
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}`, kind, apiVersion, rv, annotations)
}

// list writes a list item by item, so that no more than one of them is ever held as text.
func (c codec) list(out *bufio.Writer, p page) error {
	if c.form == formWhole && c.resource.Custom {
		return c.customList(out, p)
	}
	kind, apiVersion := c.resource.ListKind, c.resource.apiVersion()
	if c.form == formMetadata {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	metadata, err := json.Marshal(metav1.ListMeta{ResourceVersion: formatRV(p.rv), Continue: p.next, RemainingItemCount: p.remaining})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":`, kind, apiVersion, metadata)
	if err := c.items(out, p.objects); err != nil {
		return err
	}
	_, err = out.WriteString("}\n")
	return err
}

// customList has the keys of the list and of its metadata sorted, and the continue token even where it is empty.
func (c codec) customList(out *bufio.Writer, p page) error {
	metadata := map[string]any{"resourceVersion": formatRV(p.rv), "continue": p.next}
	if p.remaining != nil {
		metadata["remainingItemCount"] = *p.remaining
	}
	text, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `{"apiVersion":%q,"items":`, c.resource.apiVersion())
	if err := c.items(out, p.objects); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, `,"kind":%q,"metadata":%s}`+"\n", c.resource.ListKind, text)
	return err
}

func (c codec) items(out *bufio.Writer, objects []*object) error {
	var text []byte
	out.WriteByte('[')
	for i, o := range objects {
		text = text[:0]
		if i > 0 {
			text = append(text, ',')
		}
		var err error
		if text, err = c.item(text, o); err != nil {
			return err
		}
		// The writer keeps its first error, so this also notices a client that went away.
		if _, err = out.Write(text); err != nil {
			return err
		}
	}
	return out.WriteByte(']')
}
