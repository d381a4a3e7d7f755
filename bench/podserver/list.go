package podserver

import (
	"fmt"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page is which pods of a set a list request asks for.
func page(query url.Values, pods int) (first, n int, err error) {
	if selector := query.Get("fieldSelector"); selector != "" {
		// An informer that asks for one object would take another one for a sign that the server
		// was restored.
		return 0, 0, fmt.Errorf("field selector %q: none is known here", selector)
	}
	if token := query.Get("continue"); token != "" {
		if first, err = strconv.Atoi(token); err != nil || first < 0 || first > pods {
			return 0, 0, fmt.Errorf("continue token %q", token)
		}
	}
	n = pods - first
	if limit := query.Get("limit"); limit != "" {
		most, err := strconv.Atoi(limit)
		if err != nil || most < 0 {
			return 0, 0, fmt.Errorf("limit %q", limit)
		}
		// As a server that answers from its cache does, version 0 is told whole.
		if most > 0 && query.Get("resourceVersion") != "0" {
			n = min(n, most)
		}
	}
	return first, n, nil
}

// sendList sends n pods of a set, from the first.
func sendList(w *counted, f *form, set Options, first, n int) error {
	meta := metav1.ListMeta{ResourceVersion: set.ListVersion()}
	if left := int64(set.listed() - first - n); left > 0 {
		meta.Continue, meta.RemainingItemCount = strconv.Itoa(first+n), &left
	}
	if set.share != nil {
		meta.RemainingItemCount, meta.ShardInfo = nil, &metav1.ShardInfo{Selector: set.share.selector} // a selector hides the number
	}
	if _, err := w.Write(f.listHead().append(nil, meta, n*f.item.size())); err != nil {
		return err
	}
	if few := f.few(listed, set, first, first+n); few != nil {
		if _, err := w.Write(few[:max(0, len(few)-f.separator())]); err != nil {
			return err
		}
		_, err := w.Write(f.listHead().closing())
		return err
	}
	t := f.itemTiles.Get().(*tiles)
	defer f.itemTiles.Put(t)
	for sent := 0; sent < n; {
		some := min(n-sent, t.capacity())
		rendered := t.render(some, func(id *identity, k int) { set.identify(id, first+sent+k) })
		if sent += some; sent == n {
			rendered = rendered[:len(rendered)-f.separator()]
		}
		if _, err := w.Write(rendered); err != nil {
			return err
		}
	}
	_, err := w.Write(f.listHead().closing())
	return err
}
