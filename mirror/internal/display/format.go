package display

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Comma is a number with commas.
func Comma(n int64) string { return humanize.Comma(n) }

func bytesOf(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

func rate(n int64, seconds float64) string {
	if seconds <= 0 {
		return "0"
	}
	return Comma(int64(float64(n)/seconds + 0.5))
}

// Round leaves as many digits of a duration as one wants to read.
func Round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}

// Reason is the part of an error that several resources of a cluster have in common: without the
// URL that was asked for. Messages name the place themselves.
func Reason(err error) string {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err.Error()
	}
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest {
		code := int(status.Status().Code)
		return fmt.Sprintf("%d %s: %s", code, http.StatusText(code), status.Status().Message)
	}
	// errors.Join makes a line of each error, and pgx one of each address that it has tried.
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\t' })
	return strings.ReplaceAll(strings.Join(slices.Compact(lines), ", "), ":, ", ": ")
}

// Shortened are as many of the names as a line has room for.
func Shortened(names []string) string {
	const room = 4
	if more := len(names) - room; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:room], ", "), more)
	}
	return strings.Join(names, ", ")
}
