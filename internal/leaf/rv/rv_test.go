package rv

import (
	"math/big"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var decimal = regexp.MustCompile(`\A(0|[1-9][0-9]*)\z`)

// FuzzVersions orders resource versions as numbers of any size, and nothing else.
func FuzzVersions(f *testing.F) {
	for _, a := range []string{"", "0", "1", "9", "10", "010", "18446744073709551616", "340282366920938463463374607431768211456", "-1", "+1", "1.0", "x", "１"} {
		for _, b := range []string{"", "1", "9", "18446744073709551615", "x"} {
			f.Add(a, b)
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		order, newest := Compare(a, b), Newest(a, b)
		require.Equal(t, newest, Newest(b, a))
		require.Equal(t, map[Order]Order{Older: Newer, Same: Same, Newer: Older, Unordered: Unordered}[order], Compare(b, a))
		oldest := Oldest(a, b)
		require.Equal(t, oldest, Oldest(b, a))
		switch {
		case a == b:
			require.Equal(t, a, oldest)
		case order == Unordered:
			require.Empty(t, oldest)
		default:
			require.Equal(t, map[bool]string{true: a, false: b}[order == Older], oldest)
		}
		switch {
		case Ordered(a) && Ordered(b):
			require.Regexp(t, decimal, a)
			require.Regexp(t, decimal, b)
			numberA, _ := new(big.Int).SetString(a, 10)
			numberB, _ := new(big.Int).SetString(b, 10)
			require.Equal(t, map[int]Order{-1: Older, 0: Same, 1: Newer}[numberA.Cmp(numberB)], order)
			require.Equal(t, map[bool]string{true: b, false: a}[order == Older], newest)
		case Ordered(a):
			require.Equal(t, a, newest)
		case Ordered(b):
			require.Equal(t, b, newest)
		default:
			require.Empty(t, newest)
		}
		require.Equal(t, order == Older || order == Same, NotNewer(a, b))
		require.Equal(t, Ordered(a) && Ordered(b), order != Unordered)
		require.Equal(t, decimal.MatchString(a) && a != "0", Ordered(a), "%q", a)
	})
}

func TestAtLeast(t *testing.T) {
	for _, c := range []struct{ known, floor, want string }{
		{"5", "7", "7"},
		{"7", "5", "7"},
		{"5", "", "5"},
		{"", "5", "5"},
		{"x", "5", "5"},
		{"5", "x", "5"},
		{"x", "y", "x"},
		{"x", "", "x"},
	} {
		require.Equal(t, c.want, AtLeast(c.known, c.floor), "%+v", c)
	}
}
