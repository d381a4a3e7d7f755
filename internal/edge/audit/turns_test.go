package audit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/edge/audit"
)

func TestAuditsOfAServerTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns audit.Turns
		end, err := turns.Begin(t.Context(), "east")
		require.NoError(t, err)
		west, err := turns.Begin(t.Context(), "west")
		require.NoError(t, err, "another server is audited meanwhile")
		west()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = turns.Begin(ctx, "east")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		begun := make(chan func())
		go func() {
			end, _ := turns.Begin(t.Context(), "east")
			begun <- end
		}()
		synctest.Wait()
		select {
		case <-begun:
			t.Fatal("two audits of one server at a time")
		default:
		}
		end()
		(<-begun)()
	})
}
