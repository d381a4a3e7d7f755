package informer

import "k8s.io/apimachinery/pkg/util/resourceversion"

// newer returns the greater of two resource versions, or the one of them that
// has an order.
func newer(a, b string) string {
	order, err := resourceversion.CompareResourceVersion(a, b)
	switch {
	case err == nil && order < 0:
		return b
	case err == nil:
		return a
	case ordered(b):
		return b
	case ordered(a):
		return a
	}
	return ""
}

func ordered(resourceVersion string) bool {
	_, err := resourceversion.CompareResourceVersion(resourceVersion, resourceVersion)
	return err == nil
}
