package stream

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
)

// Table is what a consumer makes of a stream: the newest change of each object, by its key.
type Table map[string]Change

// Change is a message about an object. JSON is empty if the object was deleted.
type Change struct {
	metav1.ObjectMeta // namespace, name, UID and resource version
	JSON              []byte
	Deleted           bool
	Sequence          uint64
}

// Read is a consumer. It reads what the stream has now: with headersOnly, without JSON. A message that
// is there twice changes nothing, because the one that is read last counts.
func Read(ctx context.Context, stream jetstream.Stream, headersOnly bool) (Table, error) {
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{HeadersOnly: headersOnly, InactiveThreshold: time.Minute})
	if err != nil {
		return nil, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, err
	}
	defer messages.Stop()
	for table := (Table{}); ; {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, err
		}
		at, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		if h := m.Headers(); h.Get("Name") != "" { // else it says that a Sink was opened
			c := Change{JSON: m.Data(), Deleted: h.Get("Type") == string(informer.Deleted), Sequence: at.Sequence.Stream}
			c.Namespace, c.Name = h.Get("Namespace"), h.Get("Name")
			c.UID, c.ResourceVersion = types.UID(h.Get("Uid")), h.Get("Resource-Version")
			table[cache.MetaObjectToName(&c).String()] = c
		}
		// While others publish, the newest message may go before it is read, and NumPending may be wrong.
		if at.NumPending == 0 || at.Sequence.Stream >= info.State.LastSeq {
			return table, nil
		}
	}
}
