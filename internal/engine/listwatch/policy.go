package listwatch

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// DefaultPageSize is the number of objects asked for in a page.
const DefaultPageSize = 500

// Style is how lists are asked for.
type Style int

const (
	// Paged lists consistent pages: every list is the newest state, cut into
	// pages that all show it.
	Paged Style = iota
	// Full lists in one response, not older than what is known.
	Full
	// CacheFirst lists as client-go's reflector does: what the server has in its
	// cache at first, not older than what is known later.
	CacheFirst
)

// Policy is what a reflector was configured to do. The zero value lists
// consistent pages of the default size.
type Policy struct {
	Style Style
	// WatchList reads complete sets with a watch-list, and in Style only where that
	// does not work.
	WatchList bool
	// PageSize is the number of objects in a page; zero means DefaultPageSize,
	// except that CacheFirst then asks for pages only where the server's cache
	// is not passed by because of them.
	PageSize int64
	// CachePaged makes CacheFirst ask for pages always: the server was seen to
	// page a list that its cache would have given whole.
	CachePaged bool
	// NoResume tells that the server does not go on from a version: its watches tell again what there
	// is, and nothing of what is gone. A list follows each watch.
	NoResume bool
	// InternalErrorRetry is for how long a watch that breaks with an internal
	// error of the server is tried again before a list.
	InternalErrorRetry time.Duration
}

// Streams reports whether the request of state s is a watch-list.
//
// Where there is something that it could take back, the newest state of all is read with
// a list: a server that does not know watch-lists takes one that names no version for a
// watch that may begin with any state, also an old one.
func (p Policy) Streams(s State) bool {
	start, ok := s.(Start)
	return ok && p.WatchList && !start.Lists && !start.Consistent
}

// Newest reports whether the generation that begins in state s shows what the server has when it is
// asked, or newer. Otherwise the server may show what its cache has.
func (p Policy) Newest(s Start) bool {
	if p.Streams(s) {
		return s.Known == ""
	}
	return p.resourceVersion(s) == ""
}

// WatchListOptions is what to ask the server for where Streams is true: the set,
// not older than what is known, as events, and then what changes.
func (p Policy) WatchListOptions(s Start, timeout time.Duration) metav1.ListOptions {
	opts := metav1.ListOptions{
		ResourceVersion:      s.Known,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		SendInitialEvents:    ptr.To(true),
		AllowWatchBookmarks:  true,
		TimeoutSeconds:       ptr.To(int64(timeout / time.Second)),
	}
	return opts
}

// ListOptions is what to ask the server for in state s, Start or Listing.
func (p Policy) ListOptions(s State) metav1.ListOptions {
	switch s := s.(type) {
	case Start:
		return p.firstPage(s)
	case Listing:
		// The token holds resource version and selectors of its list.
		opts := p.firstPage(s.Start)
		return metav1.ListOptions{Limit: opts.Limit, Continue: s.Continue}
	}
	panic("listwatch: no list in this state")
}

func (p Policy) firstPage(s Start) metav1.ListOptions {
	opts := metav1.ListOptions{ResourceVersion: p.resourceVersion(s)}
	opts.Limit = p.limit(s, opts.ResourceVersion)
	if opts.Limit > 0 && opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		// With a limit and no match, a server takes the version as exact, and
		// soon as expired.
		opts.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return opts
}

func (p Policy) resourceVersion(s Start) string {
	switch {
	case s.Consistent || p.Style == Paged:
		return ""
	case s.Known == "":
		return "0"
	default:
		return s.Known
	}
}

func (p Policy) limit(s Start, resourceVersion string) int64 {
	size := p.PageSize
	if size == 0 {
		size = DefaultPageSize
	}
	switch {
	case p.Style == Full || s.Expiries >= wholeExpiries:
		return 0
	case p.Style == CacheFirst && p.PageSize == 0 && !p.CachePaged && resourceVersion != "" && resourceVersion != "0":
		// A server's cache is passed by when a list has both a limit and a version.
		return 0
	default:
		return size
	}
}

// WatchOptions is what to ask the server for in state s. The server ends the
// watch after timeout, which is cut to seconds.
func (p Policy) WatchOptions(s Watching, timeout time.Duration) metav1.ListOptions {
	return metav1.ListOptions{
		ResourceVersion:     s.Reached().Resume(),
		AllowWatchBookmarks: true,
		TimeoutSeconds:      ptr.To(int64(timeout / time.Second)),
	}
}
