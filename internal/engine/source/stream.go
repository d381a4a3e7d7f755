package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/server"
	"github.com/rvinformer/informer/internal/leaf/budget"
	"github.com/rvinformer/informer/internal/leaf/failure"
	"github.com/rvinformer/informer/internal/leaf/moment"
	"github.com/rvinformer/informer/internal/leaf/redact"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// stream is a body while it arrives. Reading fails with an *api.StallError when nothing comes for
// longer than its patience; the time between two reads does not count, so that a slow handler is
// not taken for a silent server. For a watch, what comes is a whole event, or much of a large one.
type stream struct {
	io.ReadCloser
	format wire.Format
	// watch tells that it is no list. HTTP2, zipped and lost are those of the server.Body.
	watch, http2 bool
	// hurried is how many reads are to come before others go first again: see letOthersGo.
	hurried uint8
	zipped  *server.Zipped
	lost    func()
	// patience is how long reads may wait for progress, a time.Duration.
	patience atomic.Int64
	// spent is how long the reads of a watch have waited since the last progress, and piece is how
	// many bytes they have read.
	spent time.Duration
	piece int
	// held is for how long the reader has not read, since it caught up with the server: see excuse.
	held time.Duration
	// due is when a watch ends on this side, because the server has not ended it; zero for never.
	due moment.Moment
	// ofList counts bytes of a list; nil for a watch.
	ofList   func(bytes int)
	source   *Source
	arrivals arrivals
	// bytes counts what has come over the connection.
	bytes int
	// list is the list under way that the body is of; nil for a watch, and when it has become
	// one.
	list   *budget.List
	window wideWindow
	// selected is what the server was asked to select, nil for everything.
	selected *selected
	// shard is the shardSelector that the server was asked with.
	shard  string
	timer  *time.Timer
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// errRequestEnded is the error of a request that did not return: a tweak or a transport
// of the caller's called runtime.Goexit.
var errRequestEnded = errors.New("a tweak or a transport ended its goroutine")

// open opens a list or a watch.
func (s *Source) open(ctx context.Context, opts metav1.ListOptions, patience time.Duration) (*stream, error) {
	b := &stream{source: s, watch: opts.Watch, arrivals: arrivals{opened: moment.Now()}, list: s.Turn}
	if !opts.Watch || startsWithObjects(opts) {
		b.ofList = s.Report.CountListBytes
	}
	if asked := ptr.Deref(opts.TimeoutSeconds, 0); b.watch && asked > 0 {
		b.due = moment.Of(time.Now().Add(time.Duration(asked)*time.Second + overdue))
	}
	b.expect(patience)
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	b.timer = time.AfterFunc(patience, b.giveUp)
	b.timer.Stop()
	how := server.Request{Accept: s.Form.Accept(!opts.Watch), MayWiden: s.mayWiden(opts), Sent: b.waits, Answered: b.waited, Arrived: b.received}
	var body *server.Body
	err := errRequestEnded
	// A request takes a deep stack, and a stack does not shrink below four times what
	// is in use. This one will wait for hours.
	var opening sync.WaitGroup
	opening.Go(func() {
		err = failure.Guard(b.ctx, s.Report.Fail, func() (err error) {
			body, b.shard, err = s.request(b.ctx, opts, how)
			return err
		})
	})
	opening.Wait()
	if err != nil {
		b.cancel(nil)
		return nil, redact.Error(b.reason(err))
	}
	s.heard(time.Now())
	b.ReadCloser, b.http2, b.zipped, b.lost = body.ReadCloser, body.HTTP2, body.Zipped, body.Lost
	s.over, b.selected = body.Over, selectedBy(body.Options)
	if body.Wide && !s.Prompt {
		b.window.open(b.drop)
	}
	if b.format, err = wire.FormatOf(body.ContentType); err != nil {
		defer b.close()
		return nil, b.unknown(err, opts.Watch)
	}
	return b, nil
}

// expect sets how long a read may wait, from the next one on.
func (b *stream) expect(patience time.Duration) { b.patience.Store(int64(patience)) }

// waits begins a wait for the server, and waited ends it.
func (b *stream) waits() {
	limit := time.Duration(b.patience.Load()) - b.spent
	if b.due != 0 {
		limit = min(limit, b.due.Since(moment.Now()))
	}
	b.timer.Reset(limit)
}

func (b *stream) waited() { b.timer.Stop() }

// giveUp ends a wait that is too long.
func (b *stream) giveUp() {
	if b.due != 0 && moment.Now() >= b.due {
		b.cancel(io.EOF)
		return
	}
	b.cancel(&api.StallError{Silence: time.Duration(b.patience.Load())})
}

const (
	// overdue is how long a watch may go on after the time that it was asked to last for. It is
	// longer than the margin of a Patience, so that silence is told from a server that does not end
	// its watches.
	overdue = 2 * stallMargin
	// largePiece is how much of an event is progress, so that a large one may come over a slow
	// connection.
	largePiece = 64 << 10
)

// progressed notes that an event has come.
func (b *stream) progressed() { b.spent, b.piece = 0, 0 }

// reason is why reading failed: that it was given up, if so.
func (b *stream) reason(err error) error {
	var stalled *api.StallError
	if cause := context.Cause(b.ctx); cause == ErrUnread || cause == io.EOF || errors.As(cause, &stalled) {
		return cause
	}
	return err
}

// drop gives up an answer that is left unread. Only a closed body frees what the connection holds
// of it.
func (b *stream) drop() {
	b.cancel(ErrUnread)
	b.ReadCloser.Close()
}

func (b *stream) Read(p []byte) (int, error) {
	for {
		came, began := b.bytes, b.reading()
		var n int
		var err error
		if b.beginWait() {
			n, err = b.zipped.Body.Read(p[:min(len(p), server.FirstBytes)])
			n, err = b.zipped.GoOn(p, n, err)
		} else {
			n, err = b.ReadCloser.Read(p)
		}
		if n, err = b.returned(began, n, err, len(p)); n > 0 || err != nil || b.bytes == came {
			return n, err
		} // a member with nothing in it has come
	}
}

// reading begins a read. Neither it nor returned is to be on the stack of Read, which waits.
//
//go:noinline
func (b *stream) reading() (began moment.Moment) {
	b.letOthersGo()
	b.window.reading()
	if b.list.Over() {
		b.list = nil
	}
	b.list.Waits()
	b.waits()
	began = moment.Now()
	b.held += began.Since(b.source.read)
	return began
}

// beginWait begins a read from the connection itself, and reports whether a compressed body waits
// there. If a transport of the user's has wrapped the body, the wrapper sees each read instead.
//
//go:noinline
func (b *stream) beginWait() bool {
	return b.zipped != nil && b.ReadCloser == io.ReadCloser(b.zipped) && b.zipped.BeginWait()
}

const (
	// longYield is longer than the work on what one read brings. Then there is other work that
	// takes the processors.
	longYield = 2 * time.Millisecond
	// hurriedReads are so many reads that no other goroutine goes before, where others take long.
	hurriedReads = 64
)

// letOthersGo has the workers and the connection go before the next read of a list. So objects are
// handled while processors have them in their caches, and a read takes all that has come meanwhile.
func (b *stream) letOthersGo() {
	switch {
	case b.ofList == nil:
	case b.hurried > 0:
		b.hurried--
	default:
		began := time.Now()
		runtime.Gosched()
		if time.Since(began) > longYield {
			b.hurried = hurriedReads
		}
	}
}

// returned ends a read of most bytes, and returns what came of it.
//
//go:noinline
func (b *stream) returned(began moment.Moment, n int, err error, most int) (int, error) {
	b.waited()
	if n > 0 || b.zipped != nil && err == nil {
		b.took(began, n, n == most || b.zipped != nil && b.zipped.Unread() > 0)
		if b.ofList != nil {
			b.ofList(n)
		}
	}
	if err != nil {
		b.noteWait(moment.Now().Since(began))
	}
	over := b.list.GoesOn(b.ctx)
	b.window.read()
	if err != nil && (b.watch || err != io.EOF) {
		b.lost()
	}
	if over != nil {
		return n, over
	}
	if err != nil && err != io.EOF {
		err = b.reason(err)
	}
	return n, err
}

// took notes a read of n bytes, with which more may have come.
func (b *stream) took(began moment.Moment, n int, more bool) {
	last := b.source.read
	b.source.heard(time.Now())
	b.noteWait(b.source.read.Since(began))
	if b.watch {
		b.spent += b.source.read.Since(began)
		if b.piece += n; b.piece >= largePiece {
			b.progressed()
		}
	}
	b.arrivals.returned(last, began, b.source.read, n, more, ran(began, b.source.read))
	if b.zipped == nil {
		b.received(n)
	}
}

// noteWait notes how long a read has waited.
func (b *stream) noteWait(waited time.Duration) {
	if waited >= caughtUp {
		b.held = 0
	}
}

// heldUp is the least time without reading from which on the reader counts as held up. Servers and
// proxies give a client that does not read more than that.
const heldUp = 5 * time.Second

// excuse wraps err, with which the body has ended, if it says nothing about whether the server can be
// reached: a watch has lasted for the time that it was asked for, or the reader was held up. A server
// ends an answer that is not read for long, and so may a proxy. A real outage shows with the next
// request.
func (b *stream) excuse(err error) error {
	if failure.ClassOf(err) != api.ErrorUnreachable || failure.IsStall(err) {
		return err
	}
	switch {
	case b.hasLasted():
		return failure.Excused(err, "the watch was asked to last for no longer")
	case b.held >= heldUp:
		return failure.Excused(err, fmt.Sprintf("the reading was held up for %v", b.held.Round(time.Second)))
	}
	return err
}

// hasLasted reports whether a watch has lasted for the time that it was asked for.
func (b *stream) hasLasted() bool { return b.due != 0 && moment.Now() >= b.due-moment.Moment(overdue) }

// received counts bytes that have come over the connection.
func (b *stream) received(bytes int) {
	b.bytes += bytes
	b.source.Report.CountReceived(bytes)
}

func (b *stream) close() {
	b.waited()
	b.window.close()
	b.ReadCloser.Close()
	b.cancel(nil)
}

// unknown says what an answer of an unknown content type is.
func (b *stream) unknown(reason error, watch bool) error {
	const most, patience = 256, time.Second
	b.expect(patience)
	late := time.AfterFunc(server.ErrorBodyPatience, b.giveUp)
	defer late.Stop()
	head, err := io.ReadAll(io.LimitReader(b, most))
	var stalled *api.StallError
	if len(head) == 0 && err != nil && !errors.As(err, &stalled) {
		return err
	}
	return &api.BodyError{Watch: watch, Head: wire.Quote(head), Err: reason}
}
