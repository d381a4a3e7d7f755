package server

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/engine/listwatch"
)

// retryAfter is the header in which an answer says for how long to leave the server alone.
const retryAfter = "Retry-After"

// obey has client-go know for how long an answer asks to leave the server alone. Client-go reads
// seconds only, and waits for as long as they say, also for days. The exchange is nil for requests
// that client-go makes by itself: they keep the seconds that their answers say.
func (e *exchange) obey(response *http.Response) {
	if e != nil {
		e.delay = 0 // that of an answer before, after which client-go has asked again
	}
	seconds, ok := delayOf(response.Header, time.Now())
	if !ok {
		return
	}
	if e != nil {
		seconds = min(seconds, int(listwatch.MaxRetryAfter/time.Second))
		if code := response.StatusCode; code == http.StatusTooManyRequests || code >= http.StatusInternalServerError {
			e.delay = seconds
		}
	}
	response.Header.Set(retryAfter, strconv.Itoa(seconds))
}

// delayOf returns the seconds that a header says, or the time until the date that it says, which
// client-go alone would not wait for: at most five minutes of that.
func delayOf(header http.Header, now time.Time) (seconds int, ok bool) {
	text := header.Get(retryAfter)
	if seconds, err := strconv.Atoi(text); err == nil {
		return max(seconds, 0), true
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(header.Get("Date")); err == nil {
		now = sent // by the clock of the server
	}
	left := min(until.Sub(now), listwatch.MaxRetryAfter)
	return max(int((left+time.Second-1)/time.Second), 0), true
}

// withDelay returns err, the error of the request, with for how long the server asks to be left
// alone, if only the head of the answer says so: client-go forgets the head of one that is a Status.
func (e *exchange) withDelay(err error) error {
	var answer *apierrors.StatusError
	if e.delay == 0 || !errors.As(err, &answer) {
		return err
	}
	if answer.ErrStatus.Details == nil {
		answer.ErrStatus.Details = &metav1.StatusDetails{}
	}
	if details := answer.ErrStatus.Details; details.RetryAfterSeconds == 0 {
		details.RetryAfterSeconds = int32(e.delay)
	}
	return err
}
