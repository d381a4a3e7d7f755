// Package status tests what an informer says of itself: its status, conditions, logs, errors and
// audits.
package status
