package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// Violation is a guarantee that was broken.
type Violation struct {
	// Guarantee is the name of the Validator.
	Guarantee string
	// Key is the object that it was broken for; empty where it is for none.
	Key    string
	Reason string
	// History is what happened to that object and shows it, a line for each record, in
	// order. The middle of a long one is left out.
	History []string
}

// Error is the guarantee, the key, the reason and the history.
func (v *Violation) Error() string {
	var b strings.Builder
	b.WriteString(v.Guarantee)
	if v.Key != "" {
		b.WriteString(": " + v.Key)
	}
	b.WriteString(": " + v.Reason)
	for _, line := range v.History {
		b.WriteString("\n    " + line)
	}
	return b.String()
}

// mostLines is how many lines of a history are shown.
const mostLines = 30

// violation is one that the records of key from one number to another show, both
// included, and those of the run that they are in. Of other keys it shows none.
func (h *History) violation(guarantee, key, reason string, from, to int) *Violation {
	shown := h.frame(from, to)
	if k, ok := h.numbers[key]; ok {
		shown = append(shown, within(h.keys[k].records, from, to)...)
	}
	shown = append(shown, to)
	slices.Sort(shown)
	shown = slices.Compact(shown)
	v := &Violation{Guarantee: guarantee, Key: key, Reason: reason}
	for _, n := range shown {
		v.History = append(v.History, h.records[n].line(key))
	}
	v.History = shorten(v.History)
	return v
}

// shorten leaves out the middle of a history that is too long.
func shorten(lines []string) []string {
	left := len(lines) - mostLines
	if left <= 0 {
		return lines
	}
	const first = mostLines / 3
	return slices.Concat(lines[:first], []string{fmt.Sprintf("%12s %d more", "...", left)}, lines[first+left:])
}

// frame is the records from one number to another that are of all keys, and the
// beginning of the run before them.
func (h *History) frame(from, to int) []int {
	frame := within(h.frames, from, to)
	for i := len(h.frames) - 1; i >= 0; i-- {
		n := h.frames[i]
		if _, started := h.records[n].what.(Run); started && n < from {
			return append(frame, n)
		}
	}
	return frame
}

// within is those of sorted that are from one number to another.
func within(sorted []int, from, to int) []int {
	first, _ := slices.BinarySearch(sorted, from)
	last, _ := slices.BinarySearch(sorted, to+1)
	if first >= last {
		return nil
	}
	return slices.Clone(sorted[first:last])
}
