package object

import "github.com/rvinformer/informer/internal/leaf/keytable"

// Known is an object that a server had: its key and the version of it that was read.
type Known struct {
	Key     string
	Version keytable.Version
}
