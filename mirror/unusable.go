package main

import "errors"

// unusableError says why the database cannot be used, and what to do about it. It is for good.
type unusableError struct{ reason, remedy string }

func (e *unusableError) Error() string { return e.reason + "; " + e.remedy }

// isUnusable reports whether err says that the database cannot be used.
func isUnusable(err error) bool {
	unusable := (*unusableError)(nil)
	return errors.As(err, &unusable)
}
