package display

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Screen is the one way out for all text: lasting lines, messages, and on a terminal a live block
// below them that is redrawn in place.
type Screen struct {
	out, errs io.Writer
	size      func() (width, height int) // nil where out is not a terminal

	mu    sync.Mutex
	block []string // as drawn
}

// NewScreen takes out for a terminal if it is a file that is one.
func NewScreen(out, errs io.Writer) *Screen {
	s := &Screen{out: out, errs: errs}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.size = func() (int, int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil || width == 0 || height == 0 {
				return 80, 24 // the terminal does not tell: the size that all of them once had
			}
			return width, height
		}
	}
	return s
}

// Live reports whether Draw shows anything.
func (s *Screen) Live() bool { return s.size != nil }

// Print writes a lasting line to the standard output.
func (s *Screen) Print(line string) { s.above(s.out, line) }

// Say writes a message to the standard error output.
func (s *Screen) Say(line string) { s.above(s.errs, "mirror: "+line) }

// Write lets other logs go through the screen, so that they do not tear the live block.
func (s *Screen) Write(text []byte) (int, error) {
	s.above(s.errs, strings.TrimRight(string(text), "\n"))
	return len(text), nil
}

func (s *Screen) above(to io.Writer, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	block := s.block
	s.drawLocked(nil)
	fmt.Fprintln(to, line)
	s.drawLocked(block)
}

// Draw replaces the live block, as far as there is room. An empty one removes it.
func (s *Screen) Draw(block []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawLocked(block)
}

func (s *Screen) drawLocked(block []string) {
	if !s.Live() || len(s.block)+len(block) == 0 {
		return
	}
	var text strings.Builder
	if len(s.block) > 0 {
		fmt.Fprintf(&text, "\x1b[%dA\r\x1b[J", len(s.block)) // up to its first line, clear from there
	}
	width, height := s.size()
	block = block[:min(len(block), max(height-2, 3))]
	for _, line := range block {
		// A line that wraps would be two lines, and the way back up too short.
		if letters := []rune(line); len(letters) >= width {
			line = string(letters[:max(width-1, 0)])
		}
		text.WriteString(line + "\n")
	}
	io.WriteString(s.out, text.String())
	s.block = block
}

// Out is where Print writes to, for a text of several lines while there is no live block.
func (s *Screen) Out() io.Writer { return s.out }
