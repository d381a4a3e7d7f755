// Package report has the errors that an informer reports.
package report
