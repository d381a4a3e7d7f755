package objectcache_test

import "k8s.io/apimachinery/pkg/labels"

// versionSelector is a user's selector of objects with the label "version". It is not one of apimachinery's.
type versionSelector struct{ labels.Selector }

func (versionSelector) Empty() bool { return false }
func (versionSelector) Matches(set labels.Labels) bool {
	return set.Has("version") && set.Get("version") != ""
}
