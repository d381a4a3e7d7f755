package podserver

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page is which objects of a set a list request asks for.
func page(query url.Values, set Options) (first, n int, err error) {
	if selector := query.Get("fieldSelector"); selector != "" {
		return set.selected(selector)
	}
	if token := query.Get("continue"); token != "" {
		if first, err = strconv.Atoi(token); err != nil || first < 0 || first > set.listed() {
			return 0, 0, fmt.Errorf("continue token %q", token)
		}
	}
	n = set.listed() - first
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

// listMeta is that of a list of n objects, from the first.
func (o Options) listMeta(first, n int) metav1.ListMeta {
	meta := metav1.ListMeta{ResourceVersion: o.ListVersion()}
	if left := int64(o.listed() - first - n); left > 0 {
		meta.Continue, meta.RemainingItemCount = strconv.Itoa(first+n), &left
	}
	if o.share != nil {
		meta.RemainingItemCount, meta.ShardInfo = nil, &metav1.ShardInfo{Selector: o.share.selector} // a selector hides the number
	}
	return meta
}

func (t templates) list(ctx context.Context, w *counted, first, n int) error {
	if _, err := w.Write(t.listHead(t.set.listMeta(first, n), n*t.templateOf[listed].size())); err != nil {
		return err
	}
	if err := t.send(ctx, w, listed, first, first+n, t.separator()); err != nil {
		return err
	}
	_, err := w.Write(t.listEnd())
	return err
}
