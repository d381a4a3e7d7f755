// Package stream keeps the objects of a resource in a stream of NATS JetStream. It shows how to write
// a sink that is not a database: docs/sinks.md explains it.
package stream

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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
	saved, err := s.head(ctx)
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
	for _, c := range table {
		// A deletion that the checkpoint may not have counts as the object in its last version. So what
		// is read again of the object is old, but for the deletion, which the stream drops.
		if err == nil && (!c.Deleted || c.Sequence > saved.stored) {
			err = s.Known.Add(&c)
		}
	}
	return s, err
}

// OnBatch returns when the server has stored the events, so that those of an object stay in order.
func (s *Sink) OnBatch(ctx context.Context, events []informer.Event) error {
	for _, event := range events {
		s.unsettled[event.Key] = true
	}
	err := s.publish(ctx, events)
	if err != nil && !errors.As(err, new(informer.FailedEvents)) {
		return err // the batch comes again, and the stream drops what it has
	}
	for _, event := range events {
		delete(s.unsettled, event.Key)
	}
	if len(s.unsettled) == 0 {
		s.stored.Store(s.newest)
	}
	return err
}

func (s *Sink) publish(ctx context.Context, events []informer.Event) error {
	var acks []jetstream.PubAckFuture
	var failed informer.FailedEvents
	for i, event := range events {
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
			return err
		}
	}
	if failed != nil {
		return failed // all others are acknowledged
	}
	return nil
}

// settle waits until the server has answered.
func (s *Sink) settle(ctx context.Context, ack jetstream.PubAckFuture) error {
	select {
	case answer := <-ack.Ok():
		s.newest = max(s.newest, answer.Sequence)
		if answer.Duplicate {
			return s.makeNewest(ctx, ack.Msg(), answer.Sequence)
		}
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
