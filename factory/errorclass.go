package factory

import (
	"context"
	"errors"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/rvinformer/informer"
)

// ErrorClass is what kind of failure an error is.
type ErrorClass string

const (
	// NoError: nothing has failed.
	NoError ErrorClass = ""
	// ErrorNotFound: the server does not have the resource, 404.
	ErrorNotFound ErrorClass = "not found"
	// ErrorUnauthorized: the server does not accept the credentials, 401, or the exec plugin gave none.
	ErrorUnauthorized ErrorClass = "unauthorized"
	// ErrorForbidden: the permission is missing, 403.
	ErrorForbidden ErrorClass = "forbidden"
	// ErrorExpired: the resource version is too old, 410. A list follows.
	ErrorExpired ErrorClass = "expired"
	// ErrorThrottled: too much was asked, 429.
	ErrorThrottled ErrorClass = "throttled"
	// ErrorServer: the server has a problem, 500 and above.
	ErrorServer ErrorClass = "server"
	// ErrorUnreachable: there is no connection, or it broke, or nothing came in time.
	ErrorUnreachable ErrorClass = "unreachable"
	// ErrorOther: another failure, that of a handler for instance.
	ErrorOther ErrorClass = "other"
)

// ClassOf returns the class of an error.
func ClassOf(err error) ErrorClass {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return NoError
	case isConsumers(err):
		return ErrorOther
	case errors.As(err, &status):
		return classOfCode(status.Status().Code)
	case hasNoCredentials(err):
		return ErrorUnauthorized
	case isNetwork(err):
		return ErrorUnreachable
	}
	return ErrorOther
}

func classOfCode(code int32) ErrorClass {
	switch {
	case code == 404:
		return ErrorNotFound
	case code == 401:
		return ErrorUnauthorized
	case code == 403:
		return ErrorForbidden
	case code == 410:
		return ErrorExpired
	case code == 429:
		return ErrorThrottled
	case code >= 500:
		return ErrorServer
	}
	return ErrorOther
}

// isConsumers reports whether an error is that of a handler, a store or a transform: its
// reason, which may be another server's, says nothing of this one.
func isConsumers(err error) bool {
	var process *informer.ProcessError
	var batch *informer.BatchError
	var store *informer.StoreError
	var item *informer.ItemError
	return errors.As(err, &process) || errors.As(err, &batch) || errors.As(err, &store) || errors.As(err, &item)
}

func hasNoCredentials(err error) bool {
	var credential *informer.CredentialError
	return errors.As(err, &credential)
}

func isNetwork(err error) bool {
	var network net.Error
	var stall *informer.StallError
	return errors.As(err, &network) || errors.As(err, &stall) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}
