package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/mirror/pgtest"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// A mirror goes on after its server was killed in the midst of its work, and started again. Each
// time, that is told in two lines, and nothing is missing.
func TestPostgresIsKilled(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "full_page_writes=on")
	db := openTestPostgres(t, server.NewDatabase(t), true)
	c := newTestCluster(t, "here", 1000, informertest.Options{})
	r := start(t, mirrorConfig{endpoints: []endpoint{c.endpoint()}, database: db})
	for kill := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		random := rand.New(rand.NewPCG(1, uint64(kill)))
		var changing errgroup.Group
		changing.Go(func() error {
			for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
				if err := changeAny(c, random, len(c.stock)); err != nil {
					return err
				}
			}
			return nil
		})
		if kill > 0 { // the first time it is killed while the mirror starts
			r.settle(t)
		}
		server.Kill(t)
		trouble, told := "/test1?host=", 0
		if kill > 0 {
			trouble, told = ": cannot write: ", strings.Count(r.out.messages(), ": writing again, after ")
		}
		require.Eventually(t, func() bool { return strings.Count(r.out.messages(), trouble) > told }, soon, time.Millisecond, r.out)
		server.Restart(t)
		cancel()
		require.NoError(t, changing.Wait())
		r.settle(t)
		for _, s := range c.stock {
			r.reaches(t, c, s.kind.resource)
		}
		require.Eventually(t, func() bool {
			said := r.out.messages()
			return strings.Count(said, ": writing again, after ") == strings.Count(said, ": cannot write: ")
		}, soon, time.Millisecond, r.out)
		requireEqual(t, db, c)
	}
	require.NoError(t, r.stop())
	for line := range strings.Lines(r.out.messages()) {
		require.Regexp(t, `^mirror: (database \S+: (still )?(cannot write|writing again)|here.*: (well again|discovered|database ))`, line)
	}
	require.Less(t, strings.Count(r.out.messages(), "\n"), 30, "each reason is told once:\n%s", r.out)
}
