package podserver

import (
	"fmt"

	fieldselectors "k8s.io/apimachinery/pkg/fields"
)

// selected returns the place in a list of the pod that a field selector names, and 1, or 0 if there
// is none. Others are refused: an informer that asks for one object would take another one for a
// sign that the server was restored.
func (o Options) selected(selector string) (first, n int, err error) {
	if o.Samples {
		return 0, 0, fmt.Errorf("field selector %q: none is known here", selector)
	}
	parsed, err := fieldselectors.ParseSelector(selector)
	if err != nil {
		return 0, 0, fmt.Errorf("field selector %q: %w", selector, err)
	}
	name, named := parsed.RequiresExactMatch("metadata.name")
	namespace, placed := parsed.RequiresExactMatch("metadata.namespace")
	if !named || !placed || len(parsed.Requirements()) != 2 {
		return 0, 0, fmt.Errorf("field selector %q: only a name and a namespace are known here", selector)
	}
	id := newIdentity()
	for i := range o.listed() {
		o.identify(id, i)
		if string(id[namespaceField]) == namespace && id.name() == name {
			return i, 1, nil
		}
	}
	return 0, 0, nil
}

// name is that of the pod.
func (id *identity) name() string { return string(id[replicaSetField]) + "-" + string(id[suffixField]) }
