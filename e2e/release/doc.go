// Package release tests what a release gives to its users.
package release
