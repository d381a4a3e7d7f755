package gotype

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
)

// Fingerprint returns a text that identifies the exported fields of a type, and of all types within it, with
// their tags. It is the same in each process.
func Fingerprint(t reflect.Type) string {
	h := sha256.New()
	describe(h, t, map[reflect.Type]bool{})
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// describe writes a type, and those within it that it has not seen.
func describe(w io.Writer, t reflect.Type, seen map[reflect.Type]bool) {
	fmt.Fprintf(w, "%v %s %s\n", t.Kind(), t.PkgPath(), t)
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Map:
		describe(w, t.Key(), seen)
		describe(w, t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(w, t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				fmt.Fprintf(w, "%s %s\n", f.Name, f.Tag)
				describe(w, f.Type, seen)
			}
		}
	}
}
