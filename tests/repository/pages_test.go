package repository_test

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// document is a Markdown file.
type document struct {
	path string
	// text is the file without its code blocks, and blocks are these.
	text   string
	blocks []codeBlock
}

// codeBlock is a fenced block of a page. Its language is that of the opening fence.
type codeBlock struct {
	language, text string
}

// documents are the Markdown files of the repository.
func documents(t *testing.T) []document {
	var all []document
	walkFiles(t, func(file string) {
		if path.Ext(file) == ".md" && !strings.Contains(file, "testdata/") {
			all = append(all, readPage(t, file))
		}
	})
	require.NotEmpty(t, all)
	return all
}

func readPage(t *testing.T, file string) document {
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	p := document{path: file}
	var text strings.Builder
	var block *codeBlock
	for line := range strings.Lines(string(content)) {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && block == nil:
			block = &codeBlock{language: strings.TrimSpace(language)}
		case fence:
			p.blocks, block = append(p.blocks, *block), nil
		case block != nil:
			block.text += line
		default:
			text.WriteString(line)
		}
	}
	require.Nil(t, block, "%s: a code block has no end", file)
	p.text = text.String()
	return p
}

// walkFiles calls each with the slash-separated path of every file of the repository, those of
// git's own excepted.
func walkFiles(t *testing.T, each func(file string)) {
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			each(file)
		case file == ".git", file == "bin":
			return fs.SkipDir
		}
		return nil
	})
	require.NoError(t, err)
}

var (
	pageLink    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#{1,6} +(.*?)\s*$`)
	pageComment = regexp.MustCompile(`(?s)<!--.*?-->`)
	linkText    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	pageAnchor  = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
)

// Each link of a page leads to a file of the repository, and to a heading of it. Links to other
// sites are not followed.
func TestLinksOfPages(t *testing.T) {
	anchors := map[string][]string{}
	for _, p := range documents(t) {
		anchors[p.path] = p.anchors()
	}
	for _, p := range documents(t) {
		for _, found := range pageLink.FindAllStringSubmatch(p.text, -1) {
			target, err := url.Parse(found[1])
			require.NoError(t, err, "%s: %s", p.path, found[1])
			if target.IsAbs() {
				continue
			}
			file := p.path
			if target.Path != "" {
				file = path.Join(path.Dir(p.path), target.Path)
			}
			if _, err := os.Stat(filepath.FromSlash(file)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", p.path, found[1])
			} else if target.Fragment != "" && !slices.Contains(anchors[file], target.Fragment) {
				t.Errorf("%s: the link %s leads to no heading of %s", p.path, found[1], file)
			}
		}
	}
}

// anchors are what the headings of a page are linkText by, as GitHub makes them.
func (p document) anchors() []string {
	var all []string
	for _, found := range pageHeading.FindAllStringSubmatch(pageComment.ReplaceAllString(p.text, ""), -1) {
		title := linkText.ReplaceAllString(found[1], "$1")
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		if slices.Contains(all, slug) {
			slug += "-1"
		}
		all = append(all, slug)
	}
	for _, found := range pageAnchor.FindAllStringSubmatch(p.text, -1) {
		all = append(all, found[1])
	}
	return all
}

var (
	testName     = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*…?`)
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)\(`)
	internalPath = regexp.MustCompile(`\binternal/[a-z]+`)
	makeTarget   = regexp.MustCompile("(?m)(?:`|^    )make ([a-z][a-z0-9-]*)")
)

// Each test that a page names is there. A name that ends in "…" stands for all that begin so, and
// one in a line with -run is a part of a name.
func TestTestsThatPagesName(t *testing.T) {
	var functions []string
	walkFiles(t, func(file string) {
		if path.Ext(file) != ".go" {
			return
		}
		source, err := os.ReadFile(filepath.FromSlash(file))
		require.NoError(t, err)
		for _, found := range testFunction.FindAllSubmatch(source, -1) {
			functions = append(functions, string(found[1]))
		}
	})
	for _, p := range documents(t) {
		if p.path == "CHANGELOG.md" {
			continue // what it names was there at its time
		}
		for line := range strings.Lines(p.text) {
			for _, name := range testName.FindAllString(line, -1) {
				if !slices.ContainsFunc(functions, func(f string) bool { return namesFunction(line, name, f) }) {
					t.Errorf("%s: no test has the name %s", p.path, name)
				}
			}
		}
	}
}

// namesFunction reports whether name, in a line of a page, stands for a function.
func namesFunction(line, name, function string) bool {
	begin, open := strings.CutSuffix(name, "…")
	switch {
	case strings.Contains(line, "-run "):
		return strings.Contains(function, begin)
	case open:
		return strings.HasPrefix(function, begin)
	}
	return function == name
}

// Each internal package and each target of make that a page names is there.
func TestPackagesAndCommandsThatPagesName(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	for _, p := range documents(t) {
		if p.path == "CHANGELOG.md" {
			continue
		}
		text := p.text
		for _, b := range p.blocks {
			text += b.text
		}
		for _, name := range internalPath.FindAllString(text, -1) {
			if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
				t.Errorf("%s: there is no %s", p.path, name)
			}
		}
		for _, found := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !bytes.Contains(makefile, []byte("\n"+found[1]+":")) {
				t.Errorf("%s: make has no target %s", p.path, found[1])
			}
		}
	}
}

// Each manifest of a page is what a server takes: of known kinds, and with known fields.
func TestManifestsOfPages(t *testing.T) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	manifests := 0
	for _, p := range documents(t) {
		for _, b := range p.blocks {
			if b.language != "yaml" {
				continue
			}
			for manifest := range strings.SplitSeq(b.text, "---\n") {
				manifests++
				_, _, err := decoder.Decode([]byte(manifest), nil, nil)
				require.NoError(t, err, "%s:\n%s", p.path, manifest)
			}
		}
	}
	require.Positive(t, manifests)
}
