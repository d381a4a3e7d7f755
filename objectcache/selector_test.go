package objectcache_test

import "k8s.io/apimachinery/pkg/labels"

// versionSelector is a user's selector of objects with the label "version". It is not one of
// apimachinery's.
type versionSelector struct{ labels.Selector }

func (versionSelector) Empty() bool { return false }
func (versionSelector) Matches(set labels.Labels) bool {
	return set.Has("version") && set.Get("version") != ""
}

// writingSelector is a versionSelector that calls write when it is asked first.
type writingSelector struct {
	countingSelector
	write func()
}

func (s writingSelector) Matches(set labels.Labels) bool {
	if *s.asked == 0 {
		s.write()
	}
	return s.countingSelector.Matches(set)
}

// countingSelector is a versionSelector that counts how often it is asked.
type countingSelector struct{ asked *int }

func (s countingSelector) Empty() bool { return false }
func (s countingSelector) Matches(set labels.Labels) bool {
	*s.asked++
	return versionSelector{}.Matches(set)
}
func (s countingSelector) String() string                            { return "counting" }
func (s countingSelector) Add(...labels.Requirement) labels.Selector { return s }
func (s countingSelector) Requirements() (labels.Requirements, bool) { return nil, true }
func (s countingSelector) DeepCopySelector() labels.Selector         { return s }
func (s countingSelector) RequiresExactMatch(label string) (value string, found bool) {
	return "", false
}
