// Package report has the errors that an informer reports, and guards the process against panics of the user's code.
package report
