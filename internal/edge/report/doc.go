// Package report is how an informer tells what happens to it: the errors, the error handler that
// is called with them, and the snapshot that Status shows. It also counts the gaps that only a
// list can repair, and guards the process against panics of the user's code.
//
// Each reflector has one Report. All its parts write to it, from any goroutine.
package report
