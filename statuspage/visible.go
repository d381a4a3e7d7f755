package statuspage

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// hidden are the characters that cannot be seen, or change how others are shown: controls, such as
// the escape of a terminal, and formats, such as those that turn the direction of writing. A name
// with them looks like another name.
var hidden = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp}

// isHidden is false for ends of lines and tabs, which are a space to a browser.
func isHidden(r rune) bool { return r != '\n' && r != '\t' && unicode.In(r, hidden...) }

// visible writes hidden characters as JSON escapes them: as \u and four digits, once or twice. JSON
// keeps its meaning.
func visible(text string) string {
	if !strings.ContainsFunc(text, isHidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !isHidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, part := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, part)
		}
	}
	return b.String()
}

// visibleHTML does the same with the text between tags. Attributes keep their text, because a form
// sends it again.
func visibleHTML(html string) string {
	if !strings.ContainsFunc(html, isHidden) {
		return html
	}
	var b strings.Builder
	for {
		text, rest, tagged := strings.Cut(html, "<")
		b.WriteString(visible(text))
		if !tagged {
			return b.String()
		}
		tag, after, _ := strings.Cut(rest, ">")
		b.WriteString("<" + tag + ">")
		html = after
	}
}
