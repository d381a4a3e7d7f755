package source

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// NoEnd says why it is not known where the initial events of a watch-list end.
type NoEnd string

func (e NoEnd) Error() string { return string(e) }

const (
	// errPlainBookmark: a server that does not know watch-lists sends such bookmarks.
	errPlainBookmark NoEnd = "a bookmark came that does not end the initial events"
	// errUnversionedEnd: the bookmark does not say which state was shown.
	errUnversionedEnd NoEnd = "the bookmark that ends the initial events has no resource version"
	// errChanging: a server that does not know watch-lists tells changes for ever, or something on the
	// way drops bookmarks.
	errChanging NoEnd = "changes come, and no bookmark has ended the initial events for a minute since the first change"
)

// changingPatience is how long reads may wait since the first change, until the initial events end. A
// server shows the objects first, and ends them within seconds of a change.
const changingPatience = time.Minute

// initialEvents are those of a watch-list, until they end.
type initialEvents struct {
	// objects tells that it has shown some.
	objects bool
	// changing tells that a change has come, which is not of a set, and waited is how long reads have
	// waited since.
	changing bool
	waited   time.Duration
}

// take notes an event, for which reads have waited. It reports whether the event ends them. The error
// is a NoEnd.
func (i *initialEvents) take(event *wire.Event, waited time.Duration) (ended bool, err error) {
	if i.changing {
		i.waited += min(waited, InitialPatience) // more may be a standstill of the process
	}
	switch {
	case event.Type == watch.Bookmark && !event.InitialEventsEnd:
		return false, errPlainBookmark
	case event.Type == watch.Bookmark && len(event.ResourceVersion) == 0:
		return false, errUnversionedEnd
	case event.Type == watch.Bookmark:
		return true, nil
	case event.Type == watch.Added:
		i.objects = true
	case event.Type == watch.Modified, event.Type == watch.Deleted:
		i.objects, i.changing = true, true
	}
	if i.waited >= changingPatience {
		return false, errChanging
	}
	return false, nil
}
