package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// ErrMixed says that the pages of a list were of several versions.
var ErrMixed = errors.New("the pages are not of one version")

// Copy is what an informer has acknowledged. It is safe for concurrent use, and changes while it is
// audited.
type Copy interface {
	// Len is the number of keys.
	Len() int
	// Compare compares a version to that of a key. Both are lent.
	Compare(key string, v keytable.Version) keytable.Comparison
	// Get returns the version of a key.
	Get(key string) (keytable.Version, bool)
	// LendFrom lends visit about most of the next keys and versions, and returns where to go on,
	// which is 0 at the end and at the beginning. A key that is there all the time is lent, maybe
	// twice.
	LendFrom(cursor keytable.Cursor, most int, visit func(key string, v *keytable.Binary)) (next keytable.Cursor)
}

// Item is an object that the server lists. Key and Version are lent. The key of an Unreadable one
// may be empty.
type Item struct {
	Key        string
	Version    keytable.Version
	Bytes      int
	Unreadable bool
}

// Page is what a page of a list has beside its objects.
type Page struct{ ResourceVersion, Continue string }

// Server lists the metadata of the objects that the informer follows.
type Server interface {
	// Page lists a page of the newest state, the first one if token is empty.
	Page(ctx context.Context, token string, each func(Item)) (Page, error)
	// Ask lists the object of a key in its newest state.
	Ask(ctx context.Context, key string, each func(Item)) (Page, error)
}

// Informer is an informer that is audited: what it has acknowledged, and how far it is.
type Informer interface {
	Copy
	// OnDeletion has deleted called with each deletion, before it is acknowledged, until stop, and
	// the resource version that came with it: empty, or that of an older state, if a list found it.
	// An empty key stands for deletions that are not told one by one.
	OnDeletion(deleted func(key, resourceVersion string)) (stop func())
	// Acknowledged returns the resource version up to which everything is acknowledged.
	Acknowledged() string
	// Told is Acknowledged, or an older version: no change of a version up to it can come any more.
	Told() string
	// Await returns when everything up to a resource version is acknowledged.
	Await(ctx context.Context, resourceVersion string) error
	// AwaitRead returns when everything that was read by now is acknowledged.
	AwaitRead(ctx context.Context) error
	// News returns a number that grows with each event, list and failure, and whether the informer
	// watches.
	News() (news int64, watches bool)
	// ListAgain has the server listed, and returns when all of that list is acknowledged.
	ListAgain(ctx context.Context) error
}

// Options are what is compared.
type Options struct {
	Informer Informer
	Server   Server
	// BytesPerSecond is how fast the list is read; 0 is as fast as it comes.
	BytesPerSecond int64
	// Repair has what differs listed again.
	Repair bool
}

// listPatience is for how long a watch may tell nothing, not even that it has come to the version of the
// list, before a second list is read.
const listPatience = 3 * time.Minute

// maxPasses is how often a list is begun whose pages expire. Each pass reads twice as fast as the
// one before.
const maxPasses = 3

// Run compares, repairs, and returns what it has found. After an error that is how far it came.
func Run(ctx context.Context, o Options) (api.AuditReport, error) {
	gone := newDeletions()
	defer o.Informer.OnDeletion(gone.add)()
	r, err := compare(ctx, o, gone)
	if err != nil || !o.Repair || r.Differences() == 0 {
		return r.AuditReport, err
	}
	if err := o.Informer.ListAgain(ctx); err != nil {
		return r.AuditReport, fmt.Errorf("waiting until what differs was listed and acknowledged: %w", err)
	}
	r.markRepaired(o.Informer)
	return r.AuditReport, nil
}

func compare(ctx context.Context, o Options, gone *deletions) (report, error) {
	began := time.Now()
	for pass := 1; ; pass++ {
		p := newPass(o, gone)
		err := p.run(ctx)
		p.report.Began, p.report.Took = began, time.Since(began)
		switch {
		case err == nil:
			return p.report, nil
		case pass < maxPasses && (listwatch.Classify(err) == listwatch.Expired || errors.Is(err, ErrMixed)):
			o.BytesPerSecond *= 2
		default:
			return p.report, fmt.Errorf("after %d objects of the server: %w", p.report.Objects, err)
		}
	}
}
