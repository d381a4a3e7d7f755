package stream

import (
	"context"
	"iter"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer"
)

// message returns the message of an event. Its id stands for the state of the object.
func (s *Sink) message(e informer.Event) *nats.Msg {
	o := e.Object.(metav1.Object)
	m := nats.NewMsg(s.subject("object", o.GetNamespace(), o.GetName()))
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

func (s *Sink) subject(tokens ...string) string {
	subject := s.name
	for _, token := range tokens {
		if token != "" { // the namespace of a cluster-scoped object
			subject += "." + strings.ReplaceAll(url.QueryEscape(token), ".", "%2E")
		}
	}
	return subject
}

// Change is a message of the stream: a state of an object, or, without a name, that a Sink was opened.
type Change struct {
	metav1.ObjectMeta // namespace, name, UID and resource version
	JSON              []byte
	Deleted           bool
	Sequence          uint64
	Last              bool // all that the stream had at the beginning has been read
}

// Changes yields what the stream has, and then what comes, until ctx ends. With headersOnly, there is
// no JSON.
func Changes(ctx context.Context, stream jetstream.Stream, headersOnly bool) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		end, messages, err := read(ctx, stream, headersOnly)
		if err != nil {
			yield(Change{}, err)
			return
		}
		defer messages.Stop()
		for goesOn := true; goesOn; {
			m, err := messages.Next(jetstream.NextContext(ctx))
			if err != nil {
				yield(Change{}, err)
				return
			}
			c, err := newChange(m)
			c.Last = c.Last || c.Sequence >= end
			goesOn = yield(c, err)
		}
	}
}

// read begins to read the stream, whose newest message now is end.
func read(ctx context.Context, stream jetstream.Stream, headersOnly bool) (end uint64, messages jetstream.MessagesContext, err error) {
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, nil, err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{HeadersOnly: headersOnly})
	if err != nil {
		return 0, nil, err
	}
	messages, err = consumer.Messages()
	return info.State.LastSeq, messages, err
}

func newChange(m jetstream.Msg) (Change, error) {
	at, err := m.Metadata()
	if err != nil {
		return Change{}, err
	}
	h := m.Headers()
	return Change{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.Get("Namespace"), Name: h.Get("Name"),
			UID: types.UID(h.Get("Uid")), ResourceVersion: h.Get("Resource-Version"),
		},
		JSON: m.Data(), Deleted: h.Get("Type") == string(informer.Deleted),
		Sequence: at.Sequence.Stream, Last: at.NumPending == 0, // which may be wrong while others publish
	}, nil
}
