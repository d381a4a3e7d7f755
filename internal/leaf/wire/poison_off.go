//go:build !wirepoison

package wire

// poisonLent: see poison_on.go.
const poisonLent = false
