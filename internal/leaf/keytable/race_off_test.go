//go:build !race

package keytable_test

const raced = false
