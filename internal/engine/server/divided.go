package server

import (
	"context"
	"errors"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/api"
)

// Undivided returns the Resource that lw divides, and the shard, if lw is what
// cache.NewShardedListWatch of client-go 0.38 makes of a Resource. Otherwise it returns lw itself,
// and all objects.
//
// The type of client-go is private and tells nothing. So it is asked for a list, which the Resource
// answers with what it was asked, and no request is made. This happens only if reflection has shown
// that there is a Resource behind it.
func Undivided(lw cache.ListerWatcher) (cache.ListerWatcher, api.Shard) {
	if !dividesResource(lw) {
		return lw, api.Shard{}
	}
	var p probe
	_, err := cache.ToListerWatcherWithContext(lw).ListWithContext(context.WithValue(context.Background(), probeKey{}, &p), metav1.ListOptions{})
	shard, unlike := api.ParseShard(p.options.ShardSelector)
	if !errors.Is(err, errProbed) || unlike != nil { // a selector of several ranges is client-go's to apply
		return lw, api.Shard{}
	}
	return p.resource, shard
}

// dividesResource reports whether lw is a *cache.shardedListWatch over a Resource.
func dividesResource(lw cache.ListerWatcher) bool {
	v := reflect.ValueOf(lw)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return false
	}
	of := v.Type().Elem()
	if of.Name() != "shardedListWatch" || of.PkgPath() != reflect.TypeFor[cache.ListWatch]().PkgPath() {
		return false
	}
	inner := v.Elem().FieldByName("rawLW")
	return inner.Kind() == reflect.Interface && !inner.IsNil() &&
		inner.Elem().Type().Implements(reflect.TypeFor[interface{ itself() *Resource }]())
}

type probeKey struct{}

// probe is in the context of a list that asks who answers it.
type probe struct {
	resource *Resource
	options  metav1.ListOptions
}

var errProbed = errors.New("the list asked who answers it")

// probed answers a list that has a probe.
func (r *Resource) probed(ctx context.Context, opts metav1.ListOptions) bool {
	p, ok := ctx.Value(probeKey{}).(*probe)
	if ok {
		p.resource, p.options = r, opts
	}
	return ok
}
