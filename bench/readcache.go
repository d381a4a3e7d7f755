package main

import (
	"context"
	"flag"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

// readcache measures caches that can be read.
type readcache struct {
	settings
	stored, million int
	only, figures   string

	heats []*heat
	// larger has a larger set, for ours alone.
	larger *heat
}

func newReadcache() *readcache {
	return &readcache{settings: newSettings(3, 100_000, "readable", "controllerruntime"), stored: 20_000}
}

func (r *readcache) flags(f *flag.FlagSet) {
	r.settings.flags(f)
	f.IntVar(&r.stored, "stored", r.stored, "objects of a store without an informer")
	f.IntVar(&r.million, "million", 0, "also run ours once with so many pods; client-go's would take 12 GB for a million")
	f.StringVar(&r.only, "contestants", "", "only those whose name begins with one of these, with commas between them")
	f.StringVar(&r.figures, "figures", "", "only these, with commas between them: store, read, informer, operator")
}

func (r *readcache) plan(all contestants) ([]*heat, error) {
	server := sampleHost(r.pods, warmPods, warmReleases)
	for _, h := range []*heat{
		r.newHeat(race.StoreMemory, r.stored), r.newHeat(race.Reading, r.pods),
		r.newHeat(race.Informing, r.pods, server), r.newHeat(race.Operator, r.pods, server),
	} {
		if r.figures == "" || slices.Contains(strings.Split(r.figures, ","), string(h.scenario)) {
			r.heats = append(r.heats, h)
		}
	}
	for _, e := range all {
		begins := func(prefix string) bool { return strings.HasPrefix(e.Name, prefix) }
		for _, h := range r.heats {
			if e.TakesPart(h.scenario) && (r.only == "" || slices.ContainsFunc(strings.Split(r.only, ","), begins)) {
				h.add(e.Entry, e, race.Order{Target: race.Target{Objects: h.size}})
			}
		}
	}
	if r.million == 0 || !slices.ContainsFunc(r.heats, func(h *heat) bool { return len(h.hosts) > 0 }) {
		return r.heats, nil
	}
	r.larger = r.newHeat(race.Informing, r.million, sampleHost(r.million, warmPods))
	r.larger.times = 1
	r.larger.add(race.Entry{Name: "`objectcache` typed"}, all.named(race.OursTyped), race.Order{Target: race.Target{Objects: r.million}})
	return append(slices.Clone(r.heats), r.larger), nil
}

// sampleHost is a simulated server of samples. It has made what it serves before it is followed, so
// that no contestant waits for that.
func sampleHost(pods int, warmUp ...func(context.Context, race.Target) error) *host {
	h := simulatedHost(podserver.Options{Pods: pods, Samples: true})
	start := h.start
	h.start = func(ctx context.Context) (target race.Target, stop func() error, err error) {
		target, stop, err = start(ctx)
		for _, warm := range warmUp {
			if err == nil {
				err = warm(ctx, target)
			}
		}
		return target, stop, err
	}
	return h
}

func warmReleases(ctx context.Context, target race.Target) error {
	client, err := dynamic.NewForConfig(target.Config())
	if err != nil {
		return err
	}
	_, err = client.Resource(samples.ReleaseResource).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

func warmPods(ctx context.Context, target race.Target) error {
	config := target.Config()
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
	return err
}
