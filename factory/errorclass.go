package factory

import "github.com/rvinformer/informer/internal/report"

// ErrorClass is what kind of failure an error is. A Condition is made of the same classes.
type ErrorClass = report.ErrorClass

const (
	// NoError: nothing has failed.
	NoError = report.NoError
	// ErrorNotFound: the server does not have the resource, 404.
	ErrorNotFound = report.ErrorNotFound
	// ErrorUnauthorized: the server does not accept the credentials, 401, or there are none to be
	// had.
	ErrorUnauthorized = report.ErrorUnauthorized
	// ErrorForbidden: the permission is missing, 403.
	ErrorForbidden = report.ErrorForbidden
	// ErrorExpired: the resource version is too old, 410. A list follows.
	ErrorExpired = report.ErrorExpired
	// ErrorThrottled: too much was asked, 429, or 503 with a Retry-After.
	ErrorThrottled = report.ErrorThrottled
	// ErrorServer: the server has a problem, 500 and above.
	ErrorServer = report.ErrorServer
	// ErrorUnreachable: there is no connection, or it broke, or nothing came in time.
	ErrorUnreachable = report.ErrorUnreachable
	// ErrorOther: another failure, that of a handler for instance.
	ErrorOther = report.ErrorOther
)

// ClassOf returns the class of an error.
func ClassOf(err error) ErrorClass { return report.ClassOf(err) }
