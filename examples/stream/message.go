package stream

import (
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
)

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
