package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/internal/samples"
)

// readcachePlan is what is to be measured of caches that can be read.
type readcachePlan struct {
	pods, stored, runs, million int
	only, figures               string
	profile, docs               string
}

func (p *readcachePlan) flags(f *flag.FlagSet) {
	f.IntVar(&p.pods, "pods", 100_000, "objects of the server")
	f.IntVar(&p.stored, "stored", 20_000, "objects of a store without an informer")
	f.IntVar(&p.runs, "runs", 3, "how often each is run; medians are quoted")
	f.IntVar(&p.million, "million", 0, "also run ours once with so many pods; client-go's would take 12 GB for a million")
	f.StringVar(&p.only, "contestants", "", "only those whose name begins with one of these, with commas between them")
	f.StringVar(&p.figures, "figures", "", "only these, with commas between them: store, read, informer, operator")
	f.StringVar(&p.profile, "profile", "", "directory for profiles of the heap and of the CPU of each; none if empty")
	f.StringVar(&p.docs, "docs", "../docs", "directory of performance-more.md, to write the tables to; none if empty")
}

func (p *readcachePlan) takes(contestant string, figure race.Figure) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(contestant, prefix) }
	return (p.only == "" || slices.ContainsFunc(strings.Split(p.only, ","), begins)) &&
		p.wants(figure)
}

// readings are what was measured of each contestant.
type readings map[race.Figure]map[string][]race.ReadCosts

func (r readings) add(figure race.Figure, contestant string, costs race.ReadCosts) {
	if r[figure] == nil {
		r[figure] = map[string][]race.ReadCosts{}
	}
	r[figure][contestant] = append(r[figure][contestant], costs)
}

// readcache measures caches that can be read, each in processes of its own.
func readcache(ctx context.Context, p *readcachePlan) (r *readcacheReport, err error) {
	programs, err := buildPrograms(ctx)
	if err != nil {
		return nil, err
	}
	r = &readcacheReport{plan: p, readings: readings{}, load: currentLoad()}
	if err := p.run(ctx, programs, r); err != nil {
		return nil, err
	}
	text, err := r.document(nil)
	if err != nil {
		return r, err
	}
	if _, err := os.Stdout.Write(text); err != nil || p.docs == "" {
		return r, err
	}
	return r, rewrite(p.docs, more, r.document)
}

// wants tells whether a figure is to be measured.
func (p *readcachePlan) wants(figure race.Figure) bool {
	return p.figures == "" || slices.Contains(strings.Split(p.figures, ","), string(figure))
}

func (p *readcachePlan) run(ctx context.Context, programs *programs, r *readcacheReport) (err error) {
	if err := p.runFigure(ctx, programs, r.readings, race.StoreMemory, race.ReadOrder{Objects: p.stored}); err != nil {
		return err
	}
	if err := p.runFigure(ctx, programs, r.readings, race.Reading, race.ReadOrder{Objects: p.pods}); err != nil {
		return err
	}
	if !p.wants(race.Informing) && !p.wants(race.Operator) {
		return nil
	}
	s, err := startServer(ctx, podserver.Options{Pods: p.pods, Samples: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := warmUp(ctx, s.target); err != nil {
		return err
	}
	if err := p.runFigure(ctx, programs, r.readings, race.Informing, race.ReadOrder{Target: s.target}); err != nil {
		return err
	}
	if err := p.runFigure(ctx, programs, r.readings, race.Operator, race.ReadOrder{Target: s.target}); err != nil {
		return err
	}
	if p.million == 0 {
		return nil
	}
	return p.runMillion(ctx, programs, r)
}

// runMillion measures an informer of objectcache with a larger set.
func (p *readcachePlan) runMillion(ctx context.Context, programs *programs, r *readcacheReport) (err error) {
	s, err := startServer(ctx, podserver.Options{Pods: p.million, Samples: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := warmUpPods(ctx, s.target); err != nil {
		return err
	}
	costs, err := p.runOne(ctx, programs, "readable", race.OursTyped, race.Informing, race.ReadOrder{Target: s.target})
	if err == nil {
		r.million = &costs
	}
	return err
}

// warmUp has a server make what it serves, so that no contestant waits for that.
func warmUp(ctx context.Context, target race.Target) error {
	if err := warmUpPods(ctx, target); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(target.Config())
	if err != nil {
		return err
	}
	_, err = client.Resource(samples.ReleaseResource).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

func warmUpPods(ctx context.Context, target race.Target) error {
	config := target.Config()
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

// runFigure measures a figure of all contestants, and of all of them again.
func (p *readcachePlan) runFigure(ctx context.Context, programs *programs, into readings, figure race.Figure, o race.ReadOrder) error {
	for range p.runs {
		program, contestants := "readable", race.Readables
		if figure == race.Operator {
			program, contestants = "controllerruntime", race.Operators
		}
		for _, name := range contestants {
			if !p.takes(name, figure) {
				continue
			}
			costs, err := p.runOne(ctx, programs, program, name, figure, o)
			if err != nil {
				return err
			}
			into.add(figure, name, costs)
		}
	}
	return nil
}

func (p *readcachePlan) runOne(ctx context.Context, programs *programs, program, contestant string, figure race.Figure, o race.ReadOrder) (costs race.ReadCosts, err error) {
	o.Contestant, o.Figure = contestant, figure
	if p.profile != "" {
		o.Profile = filepath.Join(p.profile, fmt.Sprintf("%s-%s", contestant, figure))
	}
	err = tell(ctx, filepath.Join(programs.dir, program), o, &costs)
	fmt.Fprintf(os.Stderr, "%s %s: %s %+v\n", time.Now().Format(time.TimeOnly), figure, contestant, costs)
	return costs, err
}
