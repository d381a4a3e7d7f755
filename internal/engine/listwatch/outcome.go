package listwatch

import (
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// Kind names what came of a request.
type Kind int

const (
	// Failed is any failure that asking again may cure: the network, a body cut
	// short, 429, 5xx, but also 401, 403 and 404, which others have to cure.
	Failed Kind = iota
	// PageRead is a page of a list that was read to its end, or the initial events
	// of a watch-list that were.
	PageRead
	// Unproven is a complete set that is odd (see Oddity), and not believed.
	Unproven
	// Expired is a resource version or continue token that the server has forgotten (410), or
	// a version from which it cannot go on.
	Expired
	// Circular is a page that came before: see Listing.Circular.
	Circular
	// TooLarge is a resource version that the server does not know yet.
	TooLarge
	// BadRequest is a request that the server will never serve (400, 422), or a resource version that
	// it cannot read.
	BadRequest
	// WatchEnded is the ordinary end of a watch.
	WatchEnded
	// WatchTooShort is a watch that ended at once and without an event.
	WatchTooShort
	// WatchBroken is an error in the stream of a watch.
	WatchBroken
	// Stalled is a watch that was silent for longer than it may be.
	Stalled
	// NoWatchList is a watch-list that the server refuses, or whose initial
	// events it does not know to end.
	NoWatchList
	// NoWatch is a watch that is refused by a server that is there, and has not said when to come
	// again. A list may be served.
	NoWatch
	// EndedEarly is a watch-list that ended before its initial events did, or of
	// which not even the head has come.
	EndedEarly
)

// Outcome is what came of one request.
type Outcome struct {
	Kind Kind
	// ResourceVersion and Continue are those of the list, for PageRead. For EndedEarly it
	// is the newest version known by then, empty where nothing was shown or versions have
	// no order.
	ResourceVersion string
	Continue        string
	// First is the key of the first object of a page, empty where it has none.
	First string
	// Shown tells that the request brought objects, also where it failed after that.
	Shown bool
	// Refused tells that the server answered with an error, so that there was no body to read,
	// and RetryAfter for how long it asked to be left alone.
	Refused    bool
	RetryAfter time.Duration
	// Internal tells that a WatchBroken was an internal error of the server (500).
	Internal bool
	// Lasted is how long the watch lasted, from its opening, and Moved tells that it told
	// something.
	Lasted time.Duration
	Moved  bool
	// Forgotten tells that the server refused, before anything else, the version to begin from, and has
	// forgotten it.
	Forgotten bool
	// Doubtful tells that the server may have been restored since the watch told its last.
	Doubtful bool
	// At is when the request failed, or the watch broke.
	At time.Time
}

// Classify names the failure err of a list or of the opening of a watch.
func Classify(err error) Kind {
	switch {
	case isExpired(err):
		return Expired
	case isTooLarge(err):
		return TooLarge
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err), isUnreadable(err):
		return BadRequest
	default:
		return Failed
	}
}

// Down reports whether err, with which a request has failed or a watch has broken, is
// of the connection or of a server that cannot serve.
func Down(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	return failure.CannotServe(answer.Status().Code) && !isTooLarge(err)
}

// ClassifyStream names the error err that a watch sent as an event.
func ClassifyStream(err error, at time.Time) Outcome {
	switch kind := Classify(err); {
	case kind == Expired || kind == TooLarge:
		return Outcome{Kind: kind}
	case apierrors.IsStoreReadError(err):
		// An object that the server cannot read was deleted. Its event is passed by: only a list
		// shows that it is gone.
		return Outcome{Kind: Expired}
	case apierrors.IsTooManyRequests(err):
		return Outcome{Kind: Failed}
	default:
		return Outcome{Kind: WatchBroken, Internal: apierrors.IsInternalError(err), At: at}
	}
}

// ClassifyWatch names the failure err of the opening of a watch. What a list would meet as well is
// Failed: a server that is away or busy, and credentials that it does not accept.
func ClassifyWatch(err error) Kind {
	kind := Classify(err)
	if kind != Failed || RetryAfter(err) > 0 {
		return kind
	}
	switch failure.ClassOf(err) {
	case api.ErrorUnreachable, api.ErrorUnauthorized, api.ErrorThrottled:
		return Failed
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		if code := answer.Status().Code; code == http.StatusRequestTimeout || failure.CannotServe(code) {
			return Failed
		}
	}
	return NoWatch
}

// ClassifyWatchList names the failure err of the opening of a watch-list. An answer that a list
// would not get as well says that watch-lists do not work here: a client that may not watch may
// still list, and a proxy may know lists only.
func ClassifyWatchList(err error) Kind {
	var answer apierrors.APIStatus
	if kind := Classify(err); kind != Failed || !errors.As(err, &answer) {
		return kind
	}
	switch code := answer.Status().Code; {
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, failure.CannotServe(code):
		return Failed
	default:
		return NoWatchList
	}
}

// ClassifyInitialEvents names the error err that a watch-list sent as an event
// before its initial events had ended.
func ClassifyInitialEvents(err error) Kind {
	if kind := Classify(err); kind == TooLarge {
		return kind
	}
	return EndedEarly
}

// isExpired knows both reasons that servers give with 410: Expired, and Gone
// from those before 1.18. It also knows the error of etcd, which some aggregated servers pass on
// as their own failure.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.IsInternalError(err) && strings.Contains(messages(err), "required revision has been compacted")
}

// isTooLarge knows the status cause, and the message of servers before 1.19.
func isTooLarge(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	return apierrors.IsTimeout(err) && strings.Contains(messages(err), "Too large resource version")
}

// isUnreadable reports whether the server cannot read the resource version. A kube-apiserver answers
// a list so with 400, and a watch with 500 and this message.
func isUnreadable(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Code == http.StatusInternalServerError &&
		strings.HasPrefix(answer.Status().Message, "resourceVersion: Invalid value")
}

func messages(err error) string {
	text := err.Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			text += "\n" + cause.Message
		}
	}
	return text
}

// MaxRetryAfter bounds what a server may ask for: one wrong number must not silence an
// informer for days.
const MaxRetryAfter = 5 * time.Minute

// RetryAfter is how long to leave the server alone after err: as long as it asks for, and
// MaxRetryAfter at most; zero if it did not say, or said a time that is over.
func RetryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok {
		return 0
	}
	return min(time.Duration(max(0, seconds))*time.Second, MaxRetryAfter)
}
