package factory

import (
	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/failure"
)

// ErrorClass is what kind of failure an error is. A Condition is made of the same classes.
type ErrorClass = api.ErrorClass

// The classes. Package api says what each means.
const (
	NoError           = api.NoError
	ErrorNotFound     = api.ErrorNotFound
	ErrorUnauthorized = api.ErrorUnauthorized
	ErrorForbidden    = api.ErrorForbidden
	ErrorExpired      = api.ErrorExpired
	ErrorThrottled    = api.ErrorThrottled
	ErrorServer       = api.ErrorServer
	ErrorUnreachable  = api.ErrorUnreachable
	ErrorOther        = api.ErrorOther
)

// ClassOf returns the class of an error.
func ClassOf(err error) ErrorClass { return failure.ClassOf(err) }
