package statuspage

import (
	"strconv"
	"strings"
)

// name tells an informer from all others of the page: its labels, and its number among those with
// the same labels, from 1.
type name struct {
	labels Labels
	number int
}

// String is the path of the name: that of its labels and, for another informer with the same ones, its
// number.
func (n name) String() string {
	path := n.labels.Path()
	if n.number > 1 {
		path += "~~" + strconv.Itoa(n.number)
	}
	return path
}

// parseName is the reverse of String.
func parseName(path string) (n name, ok bool) {
	n.number = 1
	if before, number, has := strings.Cut(path, "~~"); has {
		var err error
		if n.number, err = strconv.Atoi(number); err != nil || n.number < 2 {
			return name{}, false
		}
		path = before
	}
	parts := strings.SplitN(path, "/", 5)
	if len(parts) != 5 {
		return name{}, false
	}
	l := &n.labels
	for i, into := range []*string{&l.Cluster, &l.Group, &l.Version, &l.Resource, &l.Informer} {
		if *into, ok = readPart(parts[i]); !ok {
			return name{}, false
		}
	}
	return n, true
}

func readPart(written string) (part string, ok bool) {
	if written == "_" {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(written); i++ {
		if written[i] != '~' {
			b.WriteByte(written[i])
			continue
		}
		if i+2 >= len(written) {
			return "", false
		}
		c, err := strconv.ParseUint(written[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), b.Len() > 0
}

// masked returns labels without credentials: the name of a cluster may be its address.
func masked(l Labels) Labels {
	for _, s := range []*string{&l.Cluster, &l.Group, &l.Version, &l.Resource, &l.Informer} {
		if mayHaveCredentials(*s) {
			*s = shown(*s)
		}
	}
	return l
}

// mayHaveCredentials is false for most labels, which need no closer look.
func mayHaveCredentials(s string) bool {
	for i := range len(s) { // in one pass, because each request looks at all labels
		if c := s[i]; c == ':' || c == '=' || c == 'J' && strings.HasSuffix(s[:i], "ey") || c == ' ' && len(s) > 20 {
			return true
		}
	}
	return false
}
