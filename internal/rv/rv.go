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
