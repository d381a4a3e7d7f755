package controllerruntime

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// namespaces are the namespaces of a kind that are cached, and how. The empty name is that of all
// which are not named.
type namespaces map[string]cache.Config

// selections are the namespaces of every kind.
type selections struct {
	// byKind are the kinds that ByObject names.
	byKind map[schema.GroupVersionKind]namespaces
	// namespaced and clusterScoped are those of all other kinds.
	namespaced, clusterScoped namespaces
}

// newSelections decides what is cached of each kind. Its order of precedence is
// controller-runtime's: ByObject.Namespaces, ByObject, DefaultNamespaces, Default*.
func newSelections(opts cache.Options) (selections, error) {
	defaults := cache.Config{
		LabelSelector:         opts.DefaultLabelSelector,
		FieldSelector:         opts.DefaultFieldSelector,
		Transform:             opts.DefaultTransform,
		UnsafeDisableDeepCopy: opts.DefaultUnsafeDisableDeepCopy,
		EnableWatchBookmarks:  opts.DefaultEnableWatchBookmarks,
		SyncPeriod:            opts.SyncPeriod,
	}
	s := selections{
		byKind:        map[schema.GroupVersionKind]namespaces{},
		namespaced:    inNamespaces(opts.DefaultNamespaces, defaults),
		clusterScoped: namespaces{metav1.NamespaceAll: defaults},
	}
	for obj, byObject := range opts.ByObject {
		gvk, err := apiutil.GVKForObject(obj, opts.Scheme)
		if err != nil {
			return selections{}, fmt.Errorf("controllerruntime: GroupVersionKind of %T in ByObject: %w", obj, err)
		}
		if _, twice := s.byKind[gvk]; twice {
			return selections{}, fmt.Errorf("controllerruntime: ByObject has two entries of %v", gvk)
		}
		namespaced, err := apiutil.IsObjectNamespaced(obj, opts.Scheme, opts.Mapper)
		if err != nil {
			return selections{}, fmt.Errorf("controllerruntime: scope of %v in ByObject: %w", gvk, err)
		}
		if !namespaced && byObject.Namespaces != nil {
			return selections{}, fmt.Errorf("controllerruntime: %v is not namespaced, and has ByObject.Namespaces", gvk)
		}
		s.byKind[gvk] = ofObject(byObject, namespaced, opts.DefaultNamespaces, defaults)
	}
	return s, nil
}

// ofObject returns the namespaces of a kind that ByObject names.
func ofObject(byObject cache.ByObject, namespaced bool, defaultNamespaces map[string]cache.Config, defaults cache.Config) namespaces {
	own := cache.Config{
		LabelSelector:         byObject.Label,
		FieldSelector:         byObject.Field,
		Transform:             byObject.Transform,
		UnsafeDisableDeepCopy: byObject.UnsafeDisableDeepCopy,
		EnableWatchBookmarks:  byObject.EnableWatchBookmarks,
		SyncPeriod:            byObject.SyncPeriod,
	}
	named := byObject.Namespaces
	if namespaced && named == nil {
		named = defaultNamespaces
	}
	configs := make(map[string]cache.Config, len(named))
	for namespace, config := range named {
		// The settings of DefaultNamespaces for this namespace stand between those of the kind and
		// the defaults.
		configs[namespace] = withDefaults(withDefaults(config, own), defaultNamespaces[namespace])
	}
	return inNamespaces(configs, withDefaults(own, defaults))
}

// inNamespaces fills in what configs leave open. Without any, all namespaces are as the defaults
// say. Objects of a named namespace are not read a second time with those of all others.
func inNamespaces(configs map[string]cache.Config, defaults cache.Config) namespaces {
	if len(configs) == 0 {
		return namespaces{metav1.NamespaceAll: defaults}
	}
	filled := make(namespaces, len(configs))
	var others []fields.Selector
	for namespace, config := range configs {
		filled[namespace] = withDefaults(config, defaults)
		if namespace != metav1.NamespaceAll {
			others = append(others, fields.OneTermNotEqualSelector("metadata.namespace", namespace))
		}
	}
	if all, ok := filled[metav1.NamespaceAll]; ok && len(others) > 0 {
		slices.SortFunc(others, func(a, b fields.Selector) int { return cmp.Compare(a.String(), b.String()) })
		if all.FieldSelector != nil {
			others = append(others, all.FieldSelector)
		}
		all.FieldSelector = fields.AndSelectors(others...)
		filled[metav1.NamespaceAll] = all
	}
	return filled
}

// withDefaults takes from defaults what config leaves open.
func withDefaults(config, defaults cache.Config) cache.Config {
	if config.LabelSelector == nil {
		config.LabelSelector = defaults.LabelSelector
	}
	if config.FieldSelector == nil {
		config.FieldSelector = defaults.FieldSelector
	}
	if config.Transform == nil {
		config.Transform = defaults.Transform
	}
	if config.UnsafeDisableDeepCopy == nil {
		config.UnsafeDisableDeepCopy = defaults.UnsafeDisableDeepCopy
	}
	if config.EnableWatchBookmarks == nil {
		config.EnableWatchBookmarks = defaults.EnableWatchBookmarks
	}
	if config.SyncPeriod == nil {
		config.SyncPeriod = defaults.SyncPeriod
	}
	return config
}

// of returns the namespaces of a kind.
func (s selections) of(gvk schema.GroupVersionKind, scope meta.RESTScopeName) namespaces {
	switch named, ok := s.byKind[gvk]; {
	case ok:
		return named
	case scope == meta.RESTScopeNameNamespace:
		return s.namespaced
	default:
		return s.clusterScoped
	}
}

// bookmarks reports whether every watch may have bookmarks.
func (s selections) bookmarks() bool {
	all := append(slices.Collect(maps.Values(s.byKind)), s.namespaced, s.clusterScoped)
	for _, namespaces := range all {
		for _, config := range namespaces {
			if !enabled(config.EnableWatchBookmarks) {
				return false
			}
		}
	}
	return true
}

// exactly returns the only namespace that a field selector lets through, or the empty name.
func exactly(selector fields.Selector) string {
	if selector == nil || selector.Empty() {
		return metav1.NamespaceAll
	}
	namespace, _ := selector.RequiresExactMatch("metadata.namespace")
	return namespace
}
