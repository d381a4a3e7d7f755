// Package stream keeps the objects of a resource in a stream of NATS JetStream. It shows how to write
// a sink that is not a database: docs/sinks.md explains it.
package stream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
)

// Sink is a BatchHandler of *informer.RawObject that publishes into a stream, and the CheckpointStore
// beside it. It takes one batch after the other: leave Workers at 1.
type Sink struct {
	Known     *informer.ResourceVersionStorage // what the stream has; the Storage of the informer
	name      string
	js        jetstream.JetStream
	stream    jetstream.Stream
	bucket    jetstream.KeyValue
	fence     jetstream.PublishOpt // has messages refused once another Sink was opened
	newest    uint64               // the newest sequence in the stream
	unsettled map[string]bool      // the keys of the batch under way, and of those that failed and are to come again
	stored    atomic.Uint64        // newest when unsettled was last empty: the sink has returned nil for everything up to it
}

// Open takes the place of any other Sink of the stream, and reads what the stream has. The stream and
// the bucket of the checkpoint are created if they are not there. Only the Name of config is required.
func Open(ctx context.Context, js jetstream.JetStream, config jetstream.StreamConfig) (*Sink, error) {
	config.Subjects, config.AllowMsgTTL = []string{config.Name + ".>"}, true
	config.MaxMsgsPerSubject = cmp.Or(config.MaxMsgsPerSubject, 1) // a table: the newest state of each object
	stream, err := js.CreateOrUpdateStream(ctx, config)
	if err != nil {
		return nil, err
	}
	bucket, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: config.Name + "-checkpoint"})
	if err != nil {
		return nil, err
	}
	s := &Sink{Known: informer.NewResourceVersionStorage(), name: config.Name, js: js, stream: stream, bucket: bucket, unsettled: map[string]bool{}}
	saved, _, err := s.saved(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := js.Publish(ctx, s.name+".open", nil)
	if err != nil {
		return nil, err
	}
	s.fence = jetstream.WithExpectLastSequenceForSubject(opened.Sequence, s.name+".open")
	s.newest = opened.Sequence
	s.stored.Store(s.newest)
	table, err := Read(ctx, stream, true)
	if err == nil {
		err = s.Known.Replace(nil) // a stream that was emptied has nothing, whatever the checkpoint says
	}
	for _, c := range table {
		// A deletion that the checkpoint may not have counts as the object in its last version. So what
		// is read again of the object is old, but for the deletion, which the stream drops.
		if err == nil && (!c.Deleted || c.Sequence > saved) {
			err = s.Known.Add(&c)
		}
	}
	return s, err
}

// OnBatch returns when the server has stored the events, so that those of an object stay in order.
func (s *Sink) OnBatch(ctx context.Context, events []informer.Event) error {
	var acks []jetstream.PubAckFuture
	var failed informer.FailedEvents
	for i, event := range events {
		s.unsettled[event.Key] = true
		// The client must not send again by itself, because the bytes are lent until the return.
		ack, err := s.js.PublishMsgAsync(s.message(event), s.fence, jetstream.WithRetryAttempts(0))
		if errors.Is(err, nats.ErrMaxPayload) {
			failed = append(failed, informer.FailedEvent{Index: i, Err: err})
		} else if err != nil {
			return err
		} else {
			acks = append(acks, ack)
		}
	}
	for _, ack := range acks {
		if err := s.settle(ctx, ack); err != nil {
			return err // the batch comes again, and the stream drops what it has
		}
	}
	for _, event := range events {
		delete(s.unsettled, event.Key)
	}
	if len(s.unsettled) == 0 {
		s.stored.Store(s.newest)
	}
	if failed != nil {
		return failed
	}
	return nil
}

// settle waits until the server has answered.
func (s *Sink) settle(ctx context.Context, ack jetstream.PubAckFuture) error {
	select {
	case answer := <-ack.Ok():
		if answer.Duplicate {
			return s.makeNewest(ctx, ack.Msg(), answer.Sequence)
		}
		s.newest = max(s.newest, answer.Sequence)
		return nil
	case err := <-ack.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// makeNewest publishes a message again that the stream has dropped, if the one that it has is not the
// newest of the object. A server that was restored, or lags, shows an old state again.
func (s *Sink) makeNewest(ctx context.Context, m *nats.Msg, first uint64) error {
	newest, err := s.stream.GetLastMsgForSubject(ctx, m.Subject)
	if err != nil || newest.Sequence == first {
		return err
	}
	m.Header.Del(jetstream.MsgIDHeader)
	ack, err := s.js.PublishMsg(ctx, m)
	if err == nil {
		s.newest = ack.Sequence
	}
	return err
}

// message returns the message of an event. Its id stands for the state of the object.
func (s *Sink) message(e informer.Event) *nats.Msg {
	o := e.Object.(metav1.Object)
	// The key default/web.example has the subject NAME.object.default.web%2Eexample.
	m := nats.NewMsg(s.name + ".object." + strings.NewReplacer(".", "%2E", "%2F", ".").Replace(url.QueryEscape(e.Key)))
	m.Header = nats.Header{
		"Namespace": {o.GetNamespace()}, "Name": {o.GetName()}, "Type": {string(e.Type)},
		"Uid": {string(o.GetUID())}, "Resource-Version": {e.ResourceVersion},
	}
	id := string(o.GetUID()) + " " + e.ResourceVersion
	if e.Type == informer.Deleted {
		id += " deleted" // if the final state is unknown, the version is that of the state before
		m.Header.Set(jetstream.MsgTTLHeader, "24h")
	} else {
		m.Data = o.(interface{ Bytes() []byte }).Bytes() // of a RawObject
	}
	m.Header.Set(jetstream.MsgIDHeader, id)
	return m
}

// Save keeps a checkpoint as one value of the bucket, as a whole or not at all.
func (s *Sink) Save(ctx context.Context, write func(io.Writer) error) error {
	var value bytes.Buffer
	fmt.Fprintln(&value, s.stored.Load()) // before write: the checkpoint may have more, but not less
	if err := write(&value); err != nil {
		return err
	}
	_, err := s.bucket.Put(ctx, "checkpoint", value.Bytes())
	return err
}

// Load returns the last checkpoint. Without objects in the stream there is nothing to go on from.
func (s *Sink) Load(ctx context.Context) (io.ReadCloser, error) {
	_, checkpoint, err := s.saved(ctx)
	if err == nil && (checkpoint == nil || s.Known.Len() == 0) {
		err = fs.ErrNotExist
	}
	return io.NopCloser(checkpoint), err
}

// saved returns what Save has written: the sequence of the stream, and the checkpoint, if there is one.
func (s *Sink) saved(ctx context.Context) (stored uint64, checkpoint *bytes.Buffer, err error) {
	entry, err := s.bucket.Get(ctx, "checkpoint")
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, nil, nil
	}
	if err == nil {
		checkpoint = bytes.NewBuffer(entry.Value())
		_, err = fmt.Fscanln(checkpoint, &stored)
	}
	return stored, checkpoint, err
}
