package source

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/edge/fanout"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// Change is what a watch told: an object that was added, modified or deleted, a
// bookmark, or that something cannot be read.
type Change struct {
	Event watch.EventType
	Item  object.Item
	// Outside tells that the object is not in the Shard. Only the resource version of the Item
	// counts then.
	Outside bool
	// Unreadable is what is wrong with the event; it may have a key all the same.
	Unreadable error
	// Bookmark is the resource version of a bookmark, and InitialEnd tells the one
	// that ends the initial events.
	Bookmark   string
	InitialEnd bool
	// Joined tells that the watch was opened for another reader: see fanout.Tap.Joined.
	Joined bool
	// Current, if set, is a moment for which the change proves that everything that the server had
	// then was told by the changes up to this one.
	Current moment.Moment
}

// ErrUnversioned says that an event off the wire has no resource version, so that it does not say
// which state it shows. A server has a version for each. The events of other ListerWatchers may
// have none, such as those of fakes.
var ErrUnversioned = errors.New("the event has no resource version")

// Feed is a watch that is open. It is to be closed.
type Feed interface {
	// Wait ends the loan of the last change, and may wait until something has come. The wait takes
	// less stack than that of Next, and no Change. Next then returns what has come, or the error.
	Wait()
	// Next waits for the next change, which is lent until the next call, and stores it
	// in to. The error is io.EOF for the ordinary end, which does not come before the end of initial
	// events; an *api.StallError; an apierrors.APIStatus
	// that the server sent; an *api.BodyError; ErrUnread; or the cause of the end of ctx, which is
	// the context that the watch was opened with, or one that ends before.
	Next(ctx context.Context, to *Change) error
	// Expect sets for how long it may be silent.
	Expect(patience time.Duration)
	// KeepsInitial reports whether the connection may still have memory of initial events. The end
	// of the watch would free it.
	KeepsInitial() bool
	// Interrupt has Next return ErrUnread, at once or the next time that it waits. It may be called
	// from any goroutine, before Close.
	Interrupt()
	Close()
}

// ClassifyEnd returns what err, with which a Feed has ended at a time, says of the watch.
func ClassifyEnd(err error, at time.Time) listwatch.Outcome {
	var stalled *api.StallError
	var body *api.BodyError
	switch {
	case errors.Is(err, fanout.ErrWentBack): // a list of this reader's own has to show it
		return listwatch.Outcome{Kind: listwatch.Expired}
	case errors.As(err, &stalled):
		return listwatch.Outcome{Kind: listwatch.Stalled}
	case errors.Is(err, api.ErrContentType): // as where the header tells it when the watch is opened
		return listwatch.Outcome{Kind: listwatch.Failed, At: at}
	case errors.As(err, &body) && !wire.Malformed(body):
		return listwatch.Outcome{Kind: listwatch.WatchEnded}
	default:
		return listwatch.ClassifyStream(err, at)
	}
}
