//go:build wirepoison

package wire

// poisonLent overwrites lent bytes as soon as the loan ends, so that a caller that kept them fails
// at once:
//
//	go test -tags wirepoison ./...
//
// This package's own tests always do so.
const poisonLent = true
