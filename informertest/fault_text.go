package informertest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// String is the effect's part of a fault's text.
func (e Effect) String() string {
	if e.retry != 0 {
		return fmt.Sprintf("%s retry-after=%d", e.word(), e.retry)
	}
	return e.word()
}

// word is the effect without the time to retry after.
func (e Effect) word() string {
	t := e.traits()
	switch {
	case e.kind == effectStatus:
		return strconv.Itoa(e.n)
	case t.form == formWord, t.form == formMaybeTime && e.time == 0:
		return t.word
	case t.form == formTime, t.form == formMaybeTime:
		return fmt.Sprintf("%s=%v", t.word, e.time)
	case t.form == formPlaceBytes:
		return fmt.Sprintf("%s=%d,%d", t.word, e.n, e.size)
	case e.option:
		return fmt.Sprintf("%s=%d,%s", t.word, e.n, t.option)
	}
	return fmt.Sprintf("%s=%d", t.word, e.n)
}

// String is the page's value in a fault's text.
func (p Page) String() string {
	switch p {
	case AnyPage:
		return "any"
	case FirstPage:
		return "first"
	case LaterPages:
		return "later"
	}
	return fmt.Sprintf("Page(%d)", int(p))
}

// String is the text of the fault, from which [ParseFault] makes the same fault again.
func (f Fault) String() string {
	var words []string
	if f.Verbs != nil {
		words = append(words, strings.Join(f.Verbs, ","))
	}
	if r := f.Resource; !r.Empty() {
		path := r.Version + "/" + r.Resource
		if r.Group != "" {
			path = r.Group + "/" + path
		}
		words = append(words, "resource="+path)
	}
	if f.Page != AnyPage {
		words = append(words, "page="+f.Page.String())
	}
	if f.With != "" {
		words = append(words, "with="+f.With)
	}
	if f.Without != "" {
		words = append(words, "without="+f.Without)
	}
	words = append(words, f.Effect.String())
	for _, c := range []struct {
		name  string
		value int
	}{{"skip", f.Skip}, {"times", f.Times}, {"odds", f.Odds}} {
		if c.value != 0 {
			words = append(words, fmt.Sprintf("%s=%d", c.name, c.value))
		}
	}
	return strings.Join(words, " ")
}

// ParseFault reads a fault from words, in any order, with space between them:
//
//	list watch watch-list get   the verbs, one word each or joined by commas; none: all but get
//	resource=apps/v1/pods       of the core group: resource=v1/pods
//	page=first  page=later
//	with=NAME  without=NAME     a parameter of the query that is there, and one that is not
//	skip=N  times=N  odds=N     0 is as if the word were missing
//	the effect, exactly one     the functions that make an [Effect] name their words
//
// An error names the word that is wrong. No word may come twice, except that verbs may be several.
func ParseFault(text string) (Fault, error) {
	p := faultParser{seen: map[string]bool{}}
	for _, word := range strings.Fields(text) {
		if err := p.word(word); err != nil {
			return Fault{}, fmt.Errorf("fault %q: %w", text, err)
		}
	}
	if p.retry > 0 && p.fault.Effect.kind != effectNone {
		p.fault.Effect.retry = p.retry
	}
	if err := p.fault.validate(); err != nil {
		return Fault{}, fmt.Errorf("fault %q: %w", text, err)
	}
	return p.fault, nil
}

type faultParser struct {
	fault Fault
	retry int
	seen  map[string]bool
}

func (p *faultParser) word(word string) error {
	name, value, hasValue := strings.Cut(word, "=")
	if !hasValue {
		if verb, _, _ := strings.Cut(word, ","); verb == verbList || verb == verbWatch || verb == verbWatchList || verb == verbGet {
			p.fault.Verbs = append(p.fault.Verbs, strings.Split(word, ",")...)
			return nil
		}
	}
	if p.seen[name] {
		return fmt.Errorf("%q comes twice", name)
	}
	p.seen[name] = true

	var err error
	switch name {
	case "resource":
		p.fault.Resource, err = parseResourcePath(value)
	case "page":
		p.fault.Page, err = parsePage(value)
	case "with":
		p.fault.With, err = parseParameter(value)
	case "without":
		p.fault.Without, err = parseParameter(value)
	case "skip":
		p.fault.Skip, err = parseNumber(value)
	case "times":
		p.fault.Times, err = parseNumber(value)
	case "odds":
		p.fault.Odds, err = parseNumber(value)
	case "retry-after":
		if p.retry, err = parseNumber(value); err == nil && p.retry < 1 {
			err = errors.New("it must be at least a second")
		}
	default:
		return p.effect(word, name, value, hasValue)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", word, err)
	}
	return nil
}

func (p *faultParser) effect(word, name, value string, hasValue bool) error {
	if p.fault.Effect.kind != effectNone {
		return fmt.Errorf("%q beside %q: a fault has one effect", word, p.fault.Effect)
	}
	if code, err := strconv.Atoi(name); err == nil && !hasValue {
		p.fault.Effect = Status(code)
		return nil
	}
	// The kinds whose words have spaces are no words of a fault.
	kind := slices.IndexFunc(effects[:], func(t effectTraits) bool { return t.word == name })
	if kind < 0 {
		return fmt.Errorf("unknown word %q", word)
	}
	e := Effect{kind: effectKind(kind)}
	if err := e.parse(value, hasValue); err != nil {
		return fmt.Errorf("%q: %w", word, err)
	}
	p.fault.Effect = e
	return nil
}

// parse reads what follows the word.
func (e *Effect) parse(value string, hasValue bool) (err error) {
	t := e.traits()
	switch {
	case hasValue && t.form == formWord:
		return errors.New("it takes no number")
	case !hasValue && t.form == formTime:
		return errors.New("it needs a time")
	case !hasValue && t.form != formWord && t.form != formMaybeTime:
		return errors.New("it needs a number")
	case !hasValue:
		return nil
	case t.form == formTime || t.form == formMaybeTime:
		e.time, err = parseTime(value)
		return err
	}
	number, rest, more := strings.Cut(value, ",")
	if e.n, err = parseNumber(number); err != nil {
		return err
	}
	switch {
	case t.form == formPlaceBytes && more:
		e.size, err = parseNumber(rest)
	case t.form == formPlaceBytes:
		err = errors.New("it needs a place and a size")
	case more && t.option != "" && rest == t.option:
		e.option = true
	case more:
		err = fmt.Errorf("%q does not belong there", rest)
	}
	return err
}

func parseNumber(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is no number from 0 to %d", text, maxCount)
	}
	return int(n), nil
}

func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no time, such as 250ms", text)
	case d <= 0:
		return 0, errors.New("the time must be more than 0")
	}
	return d, nil
}

func parseParameter(text string) (string, error) {
	if text == "" {
		return "", errors.New("it needs the name of a parameter")
	}
	return text, nil // validate looks at its characters
}

func parsePage(text string) (Page, error) {
	for _, p := range []Page{AnyPage, FirstPage, LaterPages} {
		if text == p.String() {
			return p, nil
		}
	}
	return AnyPage, errors.New("the page is first or later")
}

func parseResourcePath(text string) (schema.GroupVersionResource, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	if len(parts) == 3 && parts[1] != "" && parts[2] != "" {
		return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, nil
	}
	return schema.GroupVersionResource{}, errors.New("a resource is written group/version/name, of the core group version/name")
}
