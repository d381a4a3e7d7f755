// Package fieldpath reads paths of field names: "spec.nodeName". A dot within a name is written
// `\.`.
//
// Keep, Prune and the getters of a RawObject share this syntax.
package fieldpath

import "strings"

// Cut returns the first name of a path as it is written, and what follows its dot. More tells that
// there was a dot.
func Cut(path string) (name, rest string, more bool) {
	for i := range len(path) {
		if path[i] == '.' && (i == 0 || path[i-1] != '\\') {
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}

// Valid reports whether no name of a path is empty.
func Valid(path string) bool {
	for more := true; more; {
		var name string
		if name, path, more = Cut(path); name == "" {
			return false
		}
	}
	return true
}

// Matches reports whether a name, as it is written in a path, means key.
func Matches(name string, key []byte) bool {
	if len(name) == len(key) {
		// With a backslash before a dot, name would be longer than what it means.
		return name == string(key) && !isEscaped(name)
	}
	return isEscaped(name) && matchesEscaped(name, key)
}

func isEscaped(name string) bool { return strings.Contains(name, `\.`) }

func matchesEscaped(name string, key []byte) bool {
	for {
		i := strings.Index(name, `\.`)
		if i < 0 {
			return name == string(key)
		}
		if len(key) <= i || name[:i] != string(key[:i]) || key[i] != '.' {
			return false
		}
		name, key = name[i+2:], key[i+1:]
	}
}

// Unescape returns what a name means.
func Unescape(name string) string { return strings.ReplaceAll(name, `\.`, ".") }

// Split returns what the names of a path mean.
func Split(path string) (names []string) {
	for more := true; more; {
		var name string
		name, path, more = Cut(path)
		names = append(names, Unescape(name))
	}
	return names
}

// Join writes a path as Split reads it.
func Join(names []string) string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = strings.ReplaceAll(name, ".", `\.`)
	}
	return strings.Join(escaped, ".")
}
