package typed

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/server"
	"github.com/rvinformer/informer/objectcache"
)

// decoded makes an informer that lists and watches over the connections of the factory's
// rest.Config, and keeps its objects decoded.
func (f *Factory) decoded(a ask, example runtime.Object) cache.SharedIndexInformer {
	lw := f.lists.ForResource(a.opts.Namespace, a.resource)
	if !f.protobuf {
		lw = server.Of(lw).InJSON()
	}
	return f.cached(a, example, lw, objectcache.Options{Decoded: true, Identifier: f.informerName.WithResource(a.resource)})
}
