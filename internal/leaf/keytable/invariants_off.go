//go:build !keytableinvariants

package keytable

// invariants: see invariants_on.go.
const invariants = false
