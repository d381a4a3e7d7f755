package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// performance is the document of the sections beside client-go, and more that of the others.
const performance, more = "performance.md", "performance-more.md"

// section is a part of a document, between two lines that say so.
type section struct {
	document, name string
	text           []byte
}

// publish prints the sections of the documents of tables, and writes all sections into the
// directory docs, if that is not empty.
func publish(docs string, sections []section) error {
	for _, s := range sections {
		if s.document != performance && s.document != more {
			continue
		}
		if _, err := os.Stdout.Write(s.text); err != nil {
			return err
		}
	}
	for _, s := range sections {
		if docs == "" {
			break
		}
		path := filepath.Join(docs, s.document)
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		document, err := replaceSection(old, s.name, s.text)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(path, document, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replaceSection puts text between the marks of a section, or, where there are
// none, with marks at the end.
func replaceSection(document []byte, section string, text []byte) ([]byte, error) {
	begin, end := fmt.Appendf(nil, "<!-- %s: written by make bench -->\n", section), fmt.Appendf(nil, "<!-- end of %s -->\n", section)
	text = append(bytes.TrimSpace(text), '\n')
	if !bytes.Contains(document, begin) {
		return bytes.Join([][]byte{document, []byte("\n"), begin, text, end}, nil), nil
	}
	before, rest, _ := bytes.Cut(document, begin)
	_, after, ok := bytes.Cut(rest, end)
	if !ok {
		return nil, fmt.Errorf("it has no %q", bytes.TrimSpace(end))
	}
	return bytes.Join([][]byte{before, begin, text, end, after}, nil), nil
}
