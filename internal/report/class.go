package report

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ErrorClass is what kind of failure an error is. factory.ErrorClass describes it.
type ErrorClass string

// The classes.
const (
	NoError           ErrorClass = ""
	ErrorNotFound     ErrorClass = "not found"
	ErrorUnauthorized ErrorClass = "unauthorized"
	ErrorForbidden    ErrorClass = "forbidden"
	ErrorExpired      ErrorClass = "expired"
	ErrorThrottled    ErrorClass = "throttled"
	ErrorServer       ErrorClass = "server"
	ErrorUnreachable  ErrorClass = "unreachable"
	ErrorOther        ErrorClass = "other"
)

// ClassOf returns the class of an error.
func ClassOf(err error) ErrorClass {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return NoError
	case isConsumers(err) || isItems(err):
		return ErrorOther
	case errors.As(err, &status):
		return classOfAnswer(err, status.Status().Code)
	case meta.IsNoMatchError(err):
		return ErrorNotFound
	case lacksCredentials(err):
		return ErrorUnauthorized
	case isNetwork(err):
		return ErrorUnreachable
	}
	return ErrorOther
}

// ReasonOf returns the condition that a failure to read means. It is empty if the failure is not
// one of reading.
func ReasonOf(err error) ConditionReason {
	var stall *StallError
	switch {
	case isItems(err) || isCheckpoints(err):
		return ""
	case isConsumers(err):
		return ReasonHandlerFailing
	case errors.As(err, &stall):
		return ReasonStalled
	}
	return reasonOfClass(ClassOf(err))
}

// reasonOfClass returns the condition that an error of a class means. It is empty if there is no
// error.
func reasonOfClass(class ErrorClass) ConditionReason {
	switch class {
	case NoError:
		return ""
	case ErrorNotFound:
		return ReasonNotFound
	case ErrorUnauthorized:
		return ReasonUnauthorized
	case ErrorForbidden:
		return ReasonForbidden
	case ErrorExpired:
		return ReasonExpiredLoop
	case ErrorThrottled:
		return ReasonThrottled
	case ErrorServer, ErrorUnreachable:
		return ReasonServerUnreachable
	}
	return ReasonFailing
}

func classOfAnswer(err error, code int32) ErrorClass {
	switch {
	case code == http.StatusNotFound:
		return ErrorNotFound
	case code == http.StatusUnauthorized:
		return ErrorUnauthorized
	case code == http.StatusForbidden:
		return ErrorForbidden
	case code == http.StatusGone || apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		return ErrorExpired
	case code == http.StatusTooManyRequests:
		return ErrorThrottled
	case code == http.StatusServiceUnavailable && asksForDelay(err):
		return ErrorThrottled
	case code >= http.StatusInternalServerError:
		return ErrorServer
	}
	return ErrorOther
}

func asksForDelay(err error) bool {
	seconds, asks := apierrors.SuggestsClientDelay(err)
	return asks && seconds > 0
}

// isConsumers reports whether an error is that of a handler or of a store: its cause, which may be
// another server's answer, says nothing of this one.
func isConsumers(err error) bool {
	var process *ProcessError
	var batch *BatchError
	var store *StoreError
	return errors.As(err, &process) || errors.As(err, &batch) || errors.As(err, &store)
}

// isItems reports whether an error is that of one object.
func isItems(err error) bool {
	var item *ItemError
	return errors.As(err, &item)
}

// isCheckpoints reports whether an error is that of a checkpoint, which Status.CheckpointError has.
func isCheckpoints(err error) bool {
	var unused *UnusedCheckpointError
	var store *StoreError
	return errors.As(err, &unused) || errors.As(err, &store) && strings.HasPrefix(store.Op, checkpointOps)
}

// checkpointOps is how the Op of a StoreError begins that is one of a CheckpointStore.
const checkpointOps = "CheckpointStore."

// lacksCredentials reports whether a request was not sent because an auth plugin had no credentials
// for it. client-go's exec plugins and oauth2's token sources have no error type that says so
// everywhere.
func lacksCredentials(err error) bool {
	var credential *CredentialError
	if errors.As(err, &credential) {
		return true
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	text := err.Error()
	return strings.HasPrefix(text, "getting credentials: ") || strings.HasPrefix(text, "oauth2: ")
}

func isNetwork(err error) bool {
	var network net.Error // that every *url.Error is too: there was no answer
	var stall *StallError
	// Those that need no text come first: an outage has an error for each informer.
	return errors.As(err, &network) || errors.As(err, &stall) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || isHTTP2(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// isHTTP2 reports whether err is of the HTTP/2 connection or of the request's stream on it.
// net/http exports no types of them.
func isHTTP2(err error) bool {
	text := err.Error()
	return strings.Contains(text, "http2: ") || strings.Contains(text, "stream error: stream ID ")
}

// silenceOf is how long a server was silent, if err is a *StallError.
func silenceOf(err error) time.Duration {
	var stall *StallError
	if errors.As(err, &stall) {
		return stall.Silence
	}
	return 0
}
