package informer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// A batch comes again in the order in which it came first, which is not always that
// in which its keys began to wait.
func TestABatchThatFailsKeepsItsOrder(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, w *world) {
		var tried [][]string
		b := batches{fail: func(batch []string) error {
			tried = append(tried, batch)
			switch len(tried) {
			case 1:
				time.Sleep(time.Second)
			case 2, 3:
				return errors.New("no")
			}
			return nil
		}}
		i := follow(w, informer.InformerConfig{BatchHandler: &b})
		defer start(i.RunWithContext)()
		synctest.Wait()
		w.create("a/1")
		synctest.Wait()
		w.update("a/1", "while it is taken")
		w.create("a/2")
		time.Sleep(time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, [][]string{{"add a/1"}, {"add a/2", "update a/1"}, {"add a/2", "update a/1"}, {"add a/2", "update a/1"}}, tried)
	})
}
