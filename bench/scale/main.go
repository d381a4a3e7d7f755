// Command scale simulates a fleet that no single machine can hold, in virtual time, and writes the
// tables of docs/scale.md.
//
//	cd bench && go run ./scale          # writes docs/scale.md
//	cd bench && go run ./scale -check   # fails if docs/scale.md differs
//
// The units, their hash ranges, the plan that shares them out, and the times of Leases are those of
// the library. Replicas and the coordinating API server are a model. The same seed makes the same
// tables.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	document := flag.String("doc", "../docs/scale.md", "the document that has the tables")
	check := flag.Bool("check", false, "compare instead of writing")
	seed := flag.Uint64("seed", full().seed, "what the sizes of clusters are drawn with")
	flag.Parse()
	if err := run(*document, *check, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(document string, check bool, seed uint64) error {
	m := full()
	m.seed = seed
	var tables bytes.Buffer
	if err := write(&tables, m); err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	updated, err := replaceTables(text, tables.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	switch {
	case !check:
		return os.WriteFile(document, updated, 0o644)
	case !bytes.Equal(text, updated):
		return fmt.Errorf("%s is not what this program writes: run it without -check", document)
	}
	return nil
}

const (
	begin = "<!-- scale: written by go run ./scale -->\n"
	end   = "<!-- end of scale -->\n"
)

// replaceTables puts tables between the marks of a document.
func replaceTables(document, tables []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(document, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !ok || !ended {
		return nil, errors.New("it has no marks for the tables")
	}
	return bytes.Join([][]byte{before, []byte(begin), tables, []byte(end), after}, nil), nil
}
