package process

import (
	"bytes"
	"fmt"
	"os"
)

// LogTail returns the last lines of the file, as many as fit in a few KiB. It
// is for messages about failures, so that it never fails itself.
func LogTail(path string) string {
	const most = 8 << 10
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("--- no log: %v ---", err)
	}
	if cut := len(content) - most; cut > 0 {
		content = content[cut:]
		if _, rest, found := bytes.Cut(content, []byte("\n")); found {
			content = rest
		}
	}
	return fmt.Sprintf("--- end of %s ---\n%s", path, content)
}
