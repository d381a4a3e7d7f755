package main

import (
	"bytes"
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
	f.StringVar(&p.figures, "figures", "", "only these, with commas between them: store, read, informer, operator, warm")
	f.StringVar(&p.profile, "profile", "", "directory for profiles of the heap and of the CPU of each; none if empty")
	f.StringVar(&p.docs, "docs", "../docs", "directory of performance.md, to write the tables to; none if empty")
}

func (p *readcachePlan) takes(contestant string, figure race.Figure) bool {
	if figure == race.Informing && strings.HasPrefix(contestant, "objectcache") || contestant == race.ControllerRuntimeOurs {
		return false // there is none of it yet
	}
	begins := func(prefix string) bool { return strings.HasPrefix(contestant, prefix) }
	return (p.only == "" || slices.ContainsFunc(strings.Split(p.only, ","), begins)) &&
		(p.figures == "" || slices.Contains(strings.Split(p.figures, ","), string(figure)))
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
	began := time.Now()
	programs, err := buildPrograms(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, programs.remove()) }()
	r = &readcacheReport{plan: p, readings: readings{}, load: currentLoad()}
	if err := p.run(ctx, programs, r); err != nil {
		return nil, err
	}
	r.took = time.Since(began)
	var text bytes.Buffer
	r.write(&text)
	if _, err := os.Stdout.Write(text.Bytes()); err != nil || p.docs == "" {
		return r, err
	}
	path := filepath.Join(p.docs, "performance.md")
	document, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if document, err = replaceSection(document, "bench-readcache", text.Bytes()); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, os.WriteFile(path, document, 0o644)
}

func (p *readcachePlan) run(ctx context.Context, programs *programs, r *readcacheReport) (err error) {
	s, err := startServer(ctx, podserver.Options{Pods: p.pods, Samples: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := warmUp(ctx, s.target); err != nil {
		return err
	}
	if err := p.runFigure(ctx, programs, r.readings, race.StoreMemory, race.ReadOrder{Objects: p.stored}); err != nil {
		return err
	}
	if err := p.runFigure(ctx, programs, r.readings, race.Reading, race.ReadOrder{Objects: p.pods}); err != nil {
		return err
	}
	if err := p.runFigure(ctx, programs, r.readings, race.Informing, race.ReadOrder{Target: s.target}); err != nil {
		return err
	}
	return p.runFigure(ctx, programs, r.readings, race.Operator, race.ReadOrder{Target: s.target})
}

// warmUp has a server make what it serves, so that no contestant waits for that.
func warmUp(ctx context.Context, target race.Target) error {
	opts := metav1.ListOptions{Limit: 1}
	config := target.Config()
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Pods("").List(ctx, opts); err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(target.Config())
	if err != nil {
		return err
	}
	_, err = objects.Resource(samples.ReleaseResource).List(ctx, opts)
	return err
}

// runFigure measures a figure of all contestants, and of all of them again.
func (p *readcachePlan) runFigure(ctx context.Context, programs *programs, into readings, figure race.Figure, o race.ReadOrder) error {
	for run := range p.runs {
		program, contestants := "readable", race.Readables
		if figure == race.Operator {
			program, contestants = "controllerruntime", race.Operators
		}
		for _, name := range contestants {
			if !p.takes(name, figure) {
				continue
			}
			o.Contestant, o.Figure = name, figure
			if p.profile != "" {
				o.Profile = filepath.Join(p.profile, fmt.Sprintf("%s-%s", name, figure))
			}
			var costs race.ReadCosts
			if err := tell(ctx, filepath.Join(programs.dir, program), o, &costs); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s %s, run %d: %s %+v\n", time.Now().Format(time.TimeOnly), figure, run+1, name, costs)
			into.add(figure, name, costs)
		}
	}
	return nil
}
