package failure

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/rvinformer/informer/api"
)

// ClassOf returns the class of an error.
func ClassOf(err error) api.ErrorClass {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return api.NoError
	case isConsumers(err) || isItems(err) || isCheckpoints(err) || IsExcused(err):
		return api.ErrorOther
	case errors.As(err, &status):
		return classOfAnswer(err, status.Status().Code)
	case meta.IsNoMatchError(err):
		return api.ErrorNotFound
	case lacksCredentials(err):
		return api.ErrorUnauthorized
	case isNetwork(err):
		return api.ErrorUnreachable
	}
	return api.ErrorOther
}

// ReasonOf returns the condition that a failure to read means. It is empty if the failure is not
// one of reading.
func ReasonOf(err error) api.ConditionReason {
	var refused *notWatchable
	switch {
	case isItems(err) || isCheckpoints(err) || IsExcused(err):
		return ""
	case errors.As(err, &refused):
		return api.ReasonNotWatchable
	case isConsumers(err):
		return api.ReasonHandlerFailing
	case IsStall(err):
		return api.ReasonStalled
	}
	class := ClassOf(err)
	if class == api.ErrorServer && isOwnFailure(err) {
		return api.ReasonFailing
	}
	return reasonOfClass(class)
}

// CannotServe reports whether an answer with a status code says that the server cannot serve: it
// starts or stops, or a load balancer answers whose servers are away. Any other answer comes from a
// server that is there.
func CannotServe(code int32) bool {
	return code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout
}

// isOwnFailure reports whether err is an answer of a server that is there. One that cannot serve a
// resource, because its conversion webhook is gone for instance, answers 500 to each request of it,
// and serves all others.
func isOwnFailure(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !CannotServe(status.Status().Code)
}

// reasonOfClass returns the condition that an error of a class means. It is empty if there is no
// error.
func reasonOfClass(class api.ErrorClass) api.ConditionReason {
	switch class {
	case api.NoError:
		return ""
	case api.ErrorNotFound:
		return api.ReasonNotFound
	case api.ErrorUnauthorized:
		return api.ReasonUnauthorized
	case api.ErrorForbidden:
		return api.ReasonForbidden
	case api.ErrorExpired:
		return api.ReasonExpiredLoop
	case api.ErrorThrottled:
		return api.ReasonThrottled
	case api.ErrorServer, api.ErrorUnreachable:
		return api.ReasonServerUnreachable
	}
	return api.ReasonFailing
}

func classOfAnswer(err error, code int32) api.ErrorClass {
	switch {
	case code == http.StatusNotFound:
		return api.ErrorNotFound
	case code == http.StatusUnauthorized:
		return api.ErrorUnauthorized
	case code == http.StatusForbidden:
		return api.ErrorForbidden
	case code == http.StatusGone || apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		return api.ErrorExpired
	case code == http.StatusTooManyRequests:
		return api.ErrorThrottled
	case code == http.StatusServiceUnavailable && asksForDelay(err):
		return api.ErrorThrottled
	case code >= http.StatusInternalServerError:
		return api.ErrorServer
	}
	return api.ErrorOther
}

func asksForDelay(err error) bool {
	seconds, asks := apierrors.SuggestsClientDelay(err)
	return asks && seconds > 0
}

// isConsumers reports whether an error is that of a handler or of a store: its cause, which may be
// another server's answer, says nothing of this one.
func isConsumers(err error) bool {
	var process *api.ProcessError
	var batch *api.BatchError
	var store *api.StoreError
	return errors.As(err, &process) || errors.As(err, &batch) || errors.As(err, &store)
}

// isItems reports whether an error is that of one object.
func isItems(err error) bool {
	var item *api.ItemError
	return errors.As(err, &item)
}

// isCheckpoints reports whether an error is that of a checkpoint, which Status.CheckpointError has.
func isCheckpoints(err error) bool {
	var unused *api.UnusedCheckpointError
	var store *api.StoreError
	return errors.As(err, &unused) || errors.As(err, &store) && strings.HasPrefix(store.Op, checkpointOps)
}

// IsExcused reports whether an error is one of Excused.
func IsExcused(err error) bool {
	var end *excused
	return errors.As(err, &end)
}

// checkpointOps is how the Op of a StoreError begins that is one of a CheckpointStore.
const checkpointOps = "CheckpointStore."

// lacksCredentials reports whether a request was not sent because an auth plugin had no credentials
// for it. client-go's exec plugins and oauth2's token sources have no error type that says so
// everywhere.
func lacksCredentials(err error) bool {
	var credential *api.CredentialError
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
	var certificate *tls.CertificateVerificationError
	// Those that need no text come first: an outage has an error for each informer.
	return errors.As(err, &network) || IsStall(err) || errors.As(err, &certificate) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || isHTTP2(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// isHTTP2 reports whether err is of the HTTP/2 connection or of the request's stream on it.
// net/http exports no types of them.
func isHTTP2(err error) bool {
	text := err.Error()
	return strings.Contains(text, "http2: ") || strings.Contains(text, "stream error: stream ID ")
}

// IsStall reports whether err is that of a server that was silent for too long.
func IsStall(err error) bool {
	var stall *api.StallError
	return errors.As(err, &stall)
}
