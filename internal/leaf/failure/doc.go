// Package failure says what an error is: whose it is, and the class and the reason that a Status has
// for it. It also wraps the errors of stores, and turns panics of the user's code into errors.
package failure
