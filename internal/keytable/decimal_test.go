package keytable

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecimalIsThatOfStrconv(t *testing.T) {
	hold := func(n uint64) {
		if got, want := string(appendDecimal([]byte("v"), n)), "v"+strconv.FormatUint(n, 10); got != want {
			require.Equal(t, want, got)
		}
	}
	for n := range uint64(1_000_000) {
		hold(n)
		hold(n * 100)
		hold(n * 123_456_789_012)
	}
	hold(math.MaxUint64)
	for power := uint64(1); power < math.MaxUint64/10; power *= 10 {
		hold(power - 1)
		hold(power)
	}
	for range 1_000_000 {
		hold(rand.Uint64() >> rand.IntN(64))
	}
}
