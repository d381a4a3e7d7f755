package server

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
)

// Tweak changes the options of a list or a watch before they are sent.
type Tweak func(*metav1.ListOptions)

// tweaks are applied one after the other.
type tweaks []Tweak

// with returns a copy with another tweak, which is applied first. It may be nil.
func (t tweaks) with(first Tweak) tweaks {
	if first == nil {
		return t
	}
	return append(tweaks{first}, t...)
}

// Only adds a key, "namespace/name" or "name", to what is selected.
func Only(key string) Tweak {
	slash := strings.IndexByte(key, '/')
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, key[slash+1:]).String()
	if slash >= 0 {
		selector += "," + fields.OneTermEqualSelector("metadata.namespace", key[:slash]).String()
	}
	return func(opts *metav1.ListOptions) {
		if opts.FieldSelector != "" {
			opts.FieldSelector += ","
		}
		opts.FieldSelector += selector
	}
}

// Selecting adds a label selector to what is selected.
func Selecting(labels string) Tweak {
	return func(opts *metav1.ListOptions) {
		if opts.LabelSelector != "" && labels != "" {
			opts.LabelSelector += ","
		}
		opts.LabelSelector += labels
	}
}

// Narrow returns lw with a tweak that sees the options after all others.
func Narrow(lw cache.ListerWatcherWithContext, last Tweak) cache.ListerWatcherWithContext {
	if r := Of(lw); r != nil {
		copied := *r
		copied.tweaks = append(slices.Clone(r.tweaks), last)
		return &copied
	}
	if f, ok := lw.(Filtered); ok {
		return Filtered{f.lw, append(slices.Clone(f.tweaks), last), f.older}
	}
	return Filtered{lw: lw, tweaks: tweaks{last}}
}

// apply returns opts as the tweaks have changed them, but for Limit and Continue, because pages
// belong to the reader.
func (t tweaks) apply(opts metav1.ListOptions) metav1.ListOptions {
	limit, token := opts.Limit, opts.Continue
	for _, tweak := range t {
		tweak(&opts)
	}
	opts.Limit, opts.Continue = limit, token
	return opts
}

// Filtered is a ListerWatcher of the user's, with tweaks.
type Filtered struct {
	lw     cache.ListerWatcherWithContext
	tweaks tweaks
	// older, if set, answers whether the server has a resource version: it does not.
	older error
}

var _ cache.ListerWatcherWithContext = Filtered{}

// Filter returns lw with a tweak, which may be nil.
func Filter(lw cache.ListerWatcher, tweak Tweak) Filtered {
	if f, ok := lw.(Filtered); ok {
		return Filtered{f.lw, f.tweaks.with(tweak), f.older}
	}
	return Filtered{lw: cache.ToListerWatcherWithContext(lw), tweaks: tweaks{}.with(tweak)}
}

// InPlaceOf returns lw with the tweaks of another ListerWatcher that is no Resource. Lw does not have
// the versions of the other one: older, an error of the kind listwatch.TooLarge, says so.
func InPlaceOf(other cache.ListerWatcher, lw cache.ListerWatcherWithContext, older error) Filtered {
	f, _ := other.(Filtered)
	return Filtered{lw: lw, tweaks: f.tweaks, older: older}
}

// Tweaked returns what f asks, and with which options.
func (f Filtered) Tweaked(opts metav1.ListOptions) (cache.ListerWatcherWithContext, metav1.ListOptions) {
	return f.lw, f.tweaks.apply(opts)
}

// Selection returns the selectors of a list. The rest of the source is not known.
func (f Filtered) Selection() checkpoint.Source {
	return selection(f.tweaks.apply(metav1.ListOptions{}))
}

// List implements cache.ListerWatcher.
func (f Filtered) List(opts metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), opts)
}

// Watch implements cache.ListerWatcher.
func (f Filtered) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), opts)
}

// ListWithContext implements cache.ListerWithContext.
func (f Filtered) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	return f.lw.ListWithContext(ctx, f.tweaks.apply(opts))
}

// WatchWithContext implements cache.WatcherWithContext.
func (f Filtered) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return f.lw.WatchWithContext(ctx, f.tweaks.apply(opts))
}
