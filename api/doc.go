// Package api has the values and the errors that informers are told and tell: what a Status is made
// of, audits, shards, and every error with fields.
//
// Package informer has each of them under the same name, as package os has those of io/fs, and
// programs use them there. They stand here because the packages below informer use them too.
package api
