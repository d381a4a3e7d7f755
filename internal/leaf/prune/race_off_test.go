//go:build !race

package prune_test

const raced = false
