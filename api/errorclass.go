package api

// ErrorClass is what kind of failure an error is. A Condition is made of the same classes.
type ErrorClass string

const (
	// NoError: nothing has failed.
	NoError ErrorClass = ""
	// ErrorNotFound: the server does not have the resource, 404.
	ErrorNotFound ErrorClass = "not found"
	// ErrorUnauthorized: the server does not accept the credentials, 401, or there are none to be
	// had.
	ErrorUnauthorized ErrorClass = "unauthorized"
	// ErrorForbidden: the permission is missing, 403.
	ErrorForbidden ErrorClass = "forbidden"
	// ErrorExpired: the resource version is too old, 410. A list follows.
	ErrorExpired ErrorClass = "expired"
	// ErrorThrottled: too much was asked, 429, or 503 with a Retry-After.
	ErrorThrottled ErrorClass = "throttled"
	// ErrorServer: the server has a problem, 500 and above.
	ErrorServer ErrorClass = "server"
	// ErrorUnreachable: there is no connection, or it broke, or nothing came in time.
	ErrorUnreachable ErrorClass = "unreachable"
	// ErrorOther: another failure, that of a handler for instance.
	ErrorOther ErrorClass = "other"
)
