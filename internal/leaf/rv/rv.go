// Package rv orders resource versions. It is the only caller of apimachinery's comparison, so that
// every rule for versions without an order is written at the place that has it, as a case of Order.
//
// A resource version has an order if it is a positive decimal number, of any size, without leading
// zeros. All others are opaque: only equality means something, and callers compare the strings.
package rv

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Order is how one resource version stands to another.
type Order int8

const (
	// Unordered says that at least one of the two has no order. They may be equal strings.
	Unordered Order = iota
	Older
	Same
	Newer
)

// Compare returns how a stands to b.
func Compare(a, b string) Order {
	order, err := resourceversion.CompareResourceVersion(a, b)
	switch {
	case err != nil:
		return Unordered
	case order < 0:
		return Older
	case order > 0:
		return Newer
	}
	return Same
}

// Ordered reports whether a resource version has an order.
func Ordered(resourceVersion string) bool { return Compare(resourceVersion, resourceVersion) == Same }

// IsPlace reports whether a watch can go on from a resource version. A server may begin a watch from
// no version, or from "0", with any state.
func IsPlace(resourceVersion string) bool { return resourceVersion != "" && resourceVersion != "0" }

// Moves reports whether a watch that is at one resource version is at another one after it has told
// that. A watch without a place gets none: where the list had no version, that of an object or of a
// bookmark may count something else. An older version is out of order. One without an order says
// nothing where there was one with an order before.
func Moves(at, to string) bool {
	if !IsPlace(at) || !IsPlace(to) {
		return false
	}
	switch Compare(to, at) {
	case Older:
		return false
	case Unordered:
		return !Ordered(at)
	}
	return true
}

// NotNewer reports whether a is surely not newer than b. It is false if they have no order.
func NotNewer(a, b string) bool {
	order := Compare(a, b)
	return order == Older || order == Same
}

// Newest returns the newer one of two resource versions. If only one has an order, it returns that
// one, and if neither has, it returns the empty string.
func Newest(a, b string) string {
	switch Compare(a, b) {
	case Newer, Same:
		return a
	case Older:
		return b
	}
	switch {
	case Ordered(b):
		return b
	case Ordered(a):
		return a
	}
	return ""
}

// Oldest returns the older one of two resource versions. It is empty if they differ and have no
// order.
func Oldest(a, b string) string {
	switch Compare(a, b) {
	case Older, Same:
		return a
	case Newer:
		return b
	}
	if a == b {
		return a
	}
	return ""
}

// AtLeast returns known, or floor if that is newer. If neither has an order, it returns known.
func AtLeast(known, floor string) string {
	if floor == "" {
		return known
	}
	if newest := Newest(known, floor); newest != "" {
		return newest
	}
	return known
}
