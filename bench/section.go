package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// performance is the document of the sections beside client-go, and more that of the others.
const performance, more = "performance.md", "performance-more.md"

// publish prints text, and writes it into a section of more in the directory docs, if that is not
// empty.
func publish(docs, section string, text []byte) error {
	if _, err := os.Stdout.Write(text); err != nil || docs == "" {
		return err
	}
	return rewrite(docs, more, func(document []byte) ([]byte, error) { return replaceSection(document, section, text) })
}

// rewrite changes a document in the directory docs.
func rewrite(docs, name string, change func(document []byte) ([]byte, error)) error {
	path := filepath.Join(docs, name)
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if document, err = change(document); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, document, 0o644)
}
