//go:build keytableinvariants

package keytable

// invariants checks what the fields' comments say after every change of a table,
// and panics where it does not hold:
//
//	go test -tags keytableinvariants ./...
const invariants = true
