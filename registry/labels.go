package registry

import (
	"fmt"
	"strings"
)

// Labels tell informers apart. All are optional. Their number is bounded by the number of
// informers: they never have the name of an object.
type Labels struct {
	// Cluster is empty where there is only one.
	Cluster string
	// Group, Version and Resource are those of the API; Group is empty for the core group.
	Group    string
	Version  string
	Resource string
	// Informer tells apart what the other labels do not, for instance informers of several
	// namespaces.
	Informer string
}

// Path is the name of the informer in the log and, below /informer/, on the status page: the labels with
// slashes between them, "east/apps/v1/deployments/dynamic". It has only letters, digits, and "-._~/",
// so that no proxy on the way changes it. An empty label is "_", and what a path cannot have is "~" and
// two hexadecimal digits. Different labels have different paths.
func (l Labels) Path() string {
	var b strings.Builder
	for i, label := range [...]string{l.Cluster, l.Group, l.Version, l.Resource, l.Informer} {
		if i > 0 {
			b.WriteByte('/')
		}
		writeLabel(&b, label, i == 4)
	}
	return b.String()
}

// writeLabel writes a label. Dots and underscores at the beginning of a part are escaped, too: "."
// and ".." mean something else in a path. The last label may have parts of its own.
func writeLabel(b *strings.Builder, label string, last bool) {
	if label == "" {
		b.WriteByte('_')
	}
	begins := true
	for i := range len(label) {
		c := label[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', !begins && (c == '.' || c == '_'):
			b.WriteByte(c)
			begins = false
		case last && c == '/' && !begins && i < len(label)-1:
			b.WriteByte(c)
			begins = true
		default:
			fmt.Fprintf(b, "~%02X", c)
			begins = false
		}
	}
}
