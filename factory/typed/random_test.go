package typed_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/factory/typed"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/informertest/oracle"
)

var randomFaults = append([]string{
	"refuse", "list slow=2000", "watch slow=200", "list odds=3 503", "watch odds=3 close", "watch odds=2 cut=700", "list odds=2 cut=1200,clean",
	"list page=later odds=2 410", "watch odds=2 error-event=410", "list odds=3 garbage=2", "watch odds=3 garbage=2",
}, listFaults...)

// Random days: two factories share an informer, and what each is told is right, whatever breaks.
// What is stored is in the end what exists.
func TestRandomDays(t *testing.T) {
	for seed := range uint64(20) {
		bubbleRun(t, fmt.Sprint("seed ", seed), informertest.Options{Seed: seed}, func(t *testing.T, s *informertest.Server) {
			registry := factory.New()
			config := s.Config()
			if seed%2 == 0 {
				config.ContentType = "application/json"
			}
			pages := func(o *metav1.ListOptions) {
				if o.Limit > 0 {
					o.Limit = 4
				}
			}
			randomDay(t, s, rand.New(rand.NewPCG(seed, 7)), oracle.Options{UpdatesReplace: true}, func() *typed.Factory {
				if seed%4 < 2 { // a tweak that pages is not shared
					return typed.New(nil, 0, typed.WithRESTConfig(config), typed.WithFactory(registry))
				}
				return typed.New(nil, 0, typed.WithRESTConfig(config), typed.WithFactory(registry), typed.WithTweakListOptions(pages))
			}, func() {})
			require.Empty(t, registry.Statuses())
		})
	}
}

// randomDay has two factories of newFactory follow a server on which anything happens, and requires
// that an oracle of each finds nothing wrong. When the server has healed, healed is called.
func randomDay(t *testing.T, s *informertest.Server, dice *rand.Rand, opts oracle.Options, newFactory func() *typed.Factory, healed func()) {
	opts.Late = time.Microsecond
	stop := make(chan struct{})
	var factories []*typed.Factory
	var oracles []*oracle.Oracle
	for range 2 {
		o, unobserve := judged(s, opts)
		defer unobserve()
		f := newFactory()
		_, err := f.Core().V1().Pods().Informer().AddEventHandler(o.Handler(nil))
		require.NoError(t, err)
		o.Started(oracle.Run{})
		factories, oracles = append(factories, f), append(oracles, o)
	}
	for range 10 {
		touch(t, s, dice)
	}
	for _, f := range factories {
		f.Start(stop)
	}
	for range 60 {
		act(t, s, dice)
		time.Sleep(time.Duration(dice.IntN(60_000)) * time.Millisecond)
	}
	s.Heal()
	healed()
	time.Sleep(30 * time.Minute)
	for n, f := range factories {
		oracles[n].Synced()
		settle(t, oracles[n], f)
	}
	close(stop)
	for _, f := range factories {
		f.Shutdown()
	}
}

// touch writes one object.
func touch(t *testing.T, s *informertest.Server, dice *rand.Rand) {
	p := pod(fmt.Sprint("pod-", dice.IntN(12)), "n", fmt.Sprint(dice.Uint32()))
	exists, err := s.Get(pods, p.Namespace, p.Name)
	switch {
	case err != nil:
		_, err = s.Create(pods, p)
	case dice.IntN(3) == 0:
		err = s.Delete(pods, p.Namespace, p.Name)
	default:
		p.UID = exists.GetUID()
		_, err = s.Update(pods, p)
	}
	require.NoError(t, err)
}

// act does one thing to the server.
func act(t *testing.T, s *informertest.Server, dice *rand.Rand) {
	switch dice.IntN(12) {
	case 0:
		s.Compact()
	case 1:
		s.CloseClientConnections()
	case 2, 3:
		fault, err := informertest.ParseFault(randomFaults[dice.IntN(len(randomFaults))])
		require.NoError(t, err)
		s.Inject(fault)
	case 4, 5:
		s.Heal()
	default:
		for range dice.IntN(6) {
			touch(t, s, dice)
		}
	}
}
