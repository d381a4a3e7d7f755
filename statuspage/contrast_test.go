package statuspage_test

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/statuspage"
)

// Both themes have the contrasts of WCAG 2, level AA: 4.5 for text and 3 for the edge of a field.
// The test in package e2e/browser measures the text that a browser shows.
func TestContrastsAreThoseOfWCAG(t *testing.T) {
	themes := regexp.MustCompile(`:root \{[^}]*\}`).FindAllString(get(t, statuspage.New(), http.StatusOK, "/"), -1)
	require.Len(t, themes, 2)
	for n, theme := range themes {
		color := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]+)`).FindAllStringSubmatch(theme, -1) {
			color[m[1]] = m[2]
		}
		demand := func(least float64, front, back string) {
			require.NotEmpty(t, color[front], front)
			require.NotEmpty(t, color[back], back)
			require.GreaterOrEqual(t, contrast(t, color[front], color[back]), least, "%s on %s, in theme %d", front, back, n)
		}
		for _, ground := range []string{"page", "card", "slow-soft"} {
			for _, text := range []string{"text", "soft", "link"} {
				demand(4.5, text, ground)
			}
		}
		for _, level := range []string{"wrong", "slow", "busy", "idle", "well"} {
			demand(4.5, level, level+"-soft")
			demand(4.5, level, "card")
		}
		demand(4.5, "text", "field")
		demand(4.5, "card", "link") // a button
		demand(3, "edge", "card")
		demand(3, "edge", "field")
	}
}

// contrast is the ratio of WCAG 2 between two colours, from 1 to 21:
// https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio
func contrast(t *testing.T, a, b string) float64 {
	one, other := luminance(t, a), luminance(t, b)
	return (max(one, other) + 0.05) / (min(one, other) + 0.05)
}

func luminance(t *testing.T, color string) float64 {
	digits := strings.TrimPrefix(color, "#")
	if len(digits) == 3 {
		digits = regexp.MustCompile(`.`).ReplaceAllString(digits, "$0$0")
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(digits[2*i:2*i+2], 16, 8)
		require.NoError(t, err, color)
		c := float64(n) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}
