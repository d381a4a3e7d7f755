package budget_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/budget"
)

func granted(c *budget.Claim) bool {
	select {
	case <-c.Granted:
		return true
	default:
		return false
	}
}

func TestClaimsAreGrantedInTheirOrder(t *testing.T) {
	b := budget.New(10)
	require.True(t, b.TryTake(8))
	large, small := b.Claim(6), b.Claim(1)
	require.False(t, granted(large))
	require.False(t, granted(small), "though there is room for it")
	require.False(t, b.TryTake(1), "nor does anybody pass them")
	b.Give(4)
	require.True(t, granted(large))
	require.False(t, granted(small))
	b.Give(4)
	require.True(t, granted(small))
	require.EqualValues(t, 7, b.InUse())
	require.EqualValues(t, 10, b.Peak())
	require.EqualValues(t, 10, b.Limit())
}

func TestWithdrawnClaims(t *testing.T) {
	b := budget.New(10)
	b.Take(10)
	large, small := b.Claim(6), b.Claim(1)
	b.Give(1)
	require.False(t, granted(small))
	b.Withdraw(large)
	require.True(t, granted(small), "nothing stands before it any more")
	b.Withdraw(small)
	require.EqualValues(t, 9, b.InUse(), "what was granted is given back")
}

func TestWhatIsLargerThanTheLimit(t *testing.T) {
	b := budget.New(10)
	require.True(t, b.TryTake(100), "passes where nothing else is")
	require.False(t, b.TryTake(1))
	c := b.Claim(100)
	b.Take(5)
	b.Give(100)
	require.False(t, granted(c))
	b.Give(5)
	require.True(t, granted(c))
	require.EqualValues(t, 105, b.Peak())
}
