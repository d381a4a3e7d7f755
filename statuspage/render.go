package statuspage

import (
	"embed"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

var (
	//go:embed style.css
	style string
	//go:embed *.html
	files embed.FS

	templates = template.Must(template.New("").Funcs(template.FuncMap{
		"style": func() template.CSS { return template.CSS(style) },
		"ago":   ago, "span": span, "count": count[int], "size": size, "words": words, "show": show,
	}).ParseFS(files, "*.html"))
)

// ago is how long before now a time was, for people.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return span(now.Sub(t))
}

// span is a duration in its two largest units: "3 d 4 h", "12 min", "0.4 s".
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Floor(d.Seconds()*10)/10, 'f', -1, 64) + " s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// count is a number with narrow spaces between thousands.
func count[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	var b strings.Builder
	for i, d := range digits {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// size is a number of bytes in its largest unit.
func size(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return count(n) + " B"
	}
	f, unit := float64(n)/(1<<10), 0
	for ; f >= 1000 && unit < len(units)-1; unit++ {
		f /= 1 << 10
	}
	precision := 0
	if f < 10 {
		precision = 1
	}
	return strconv.FormatFloat(f, 'f', precision, 64) + " " + units[unit:unit+1] + "iB"
}

// decimal is a number with two places.
func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }
