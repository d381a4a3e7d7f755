package stream

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newJetStream runs a NATS server until the test ends.
func newJetStream(t *testing.T) jetstream.JetStream {
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	conn, err := nats.Connect("", nats.InProcessServer(s))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncTimeout(10*time.Second))
	require.NoError(t, err)
	return js
}

// everything is a stream that keeps each message.
func everything() jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: "configmaps", MaxMsgsPerSubject: -1}
}

func newSink(t *testing.T, js jetstream.JetStream, config jetstream.StreamConfig) *Sink {
	s, err := Open(t.Context(), js, config)
	require.NoError(t, err)
	return s
}

// object stands for a RawObject.
type object struct {
	metav1.PartialObjectMetadata
	content string
}

func (o object) Bytes() []byte { return []byte(o.content) }

// event is one of the object default/name, with content of so many bytes.
func event(kind informer.EventType, name, version string, size int) informer.Event {
	o := object{content: strings.Repeat("x", size)}
	o.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid of " + name), ResourceVersion: version}
	return informer.Event{Type: kind, Key: "default/" + name, Object: &o, ResourceVersion: version}
}

// states returns what the stream says of objects, in its order.
func states(t *testing.T, s *Sink) (all []string) {
	for sequence := uint64(1); ; sequence++ {
		m, err := s.stream.GetMsg(t.Context(), sequence, jetstream.WithGetMsgSubject(s.name+".object.>"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return all
		}
		require.NoError(t, err)
		sequence = m.Sequence
		state := m.Header.Get("Name") + " " + m.Header.Get("Resource-Version")
		if m.Header.Get("Type") == "Deleted" {
			state += " deleted"
		}
		all = append(all, state)
	}
}

// known returns what the sink has read of the stream when it was opened.
func known(s *Sink) map[string]string {
	all := map[string]string{}
	for key, version := range s.Known.All() {
		all[strings.Clone(key)] = strings.Clone(version)
	}
	return all
}

// versions returns the resource versions of the objects that a table has.
func versions(table Table) map[string]string {
	all := map[string]string{}
	for key, c := range table {
		if !c.Deleted {
			all[key] = c.ResourceVersion
		}
	}
	return all
}

func TestStreamDropsWhatComesTwice(t *testing.T) {
	js := newJetStream(t)
	batch := []informer.Event{event(informer.Added, "a", "1", 10), event(informer.Added, "b", "2", 10)}
	s := newSink(t, js, everything())
	require.NoError(t, s.OnBatch(t.Context(), batch))
	require.NoError(t, s.OnBatch(t.Context(), batch)) // the answer was lost
	s = newSink(t, js, everything())
	require.NoError(t, s.OnBatch(t.Context(), batch)) // a new process that has no checkpoint
	require.Equal(t, []string{"a 1", "b 2"}, states(t, s))
}

// A list that finds a deletion only knows the version of the state before.
func TestDeletionOfUnknownFinalStateIsNotDropped(t *testing.T) {
	s := newSink(t, newJetStream(t), everything())
	require.NoError(t, s.OnBatch(t.Context(), []informer.Event{event(informer.Added, "a", "1", 10)}))
	deleted := event(informer.Deleted, "a", "1", 10)
	deleted.Object = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid of a", ResourceVersion: "1"}}
	deleted.FinalStateUnknown = true
	require.NoError(t, s.OnBatch(t.Context(), []informer.Event{deleted}))
	require.Equal(t, []string{"a 1", "a 1 deleted"}, states(t, s))
}

// A state that comes back within the window, after another one, is the newest of the stream again.
func TestOldStateThatComesBackIsNotDropped(t *testing.T) {
	s := newSink(t, newJetStream(t), everything())
	for _, e := range []informer.Event{
		event(informer.Added, "a", "1", 10), event(informer.Updated, "a", "2", 10), event(informer.Updated, "a", "1", 10),
	} {
		require.NoError(t, s.OnBatch(t.Context(), []informer.Event{e}))
	}
	require.Equal(t, []string{"a 1", "a 2", "a 1"}, states(t, s))
}

func TestMessageThatIsTooLargeFailsAlone(t *testing.T) {
	s := newSink(t, newJetStream(t), everything())
	err := s.OnBatch(t.Context(), []informer.Event{
		event(informer.Added, "a", "1", 10), event(informer.Added, "b", "2", 2<<20), event(informer.Added, "c", "3", 10),
	})
	var failed informer.FailedEvents
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed, 1)
	require.Equal(t, 1, failed[0].Index)
	require.ErrorIs(t, err, nats.ErrMaxPayload)
	require.Equal(t, []string{"a 1", "c 3"}, states(t, s))
}

func TestSinkIsRefusedOnceAnotherOneIsOpen(t *testing.T) {
	js := newJetStream(t)
	former := newSink(t, js, everything())
	next := newSink(t, js, everything())
	err := former.OnBatch(t.Context(), []informer.Event{event(informer.Added, "a", "1", 10)})
	var refused *jetstream.APIError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, jetstream.JSErrCodeStreamWrongLastSequence, refused.ErrorCode)
	require.NotErrorAs(t, err, new(informer.FailedEvents)) // no event is at fault
	require.NoError(t, next.OnBatch(t.Context(), []informer.Event{event(informer.Added, "a", "1", 10)}))
	require.Equal(t, []string{"a 1"}, states(t, next))
}

func TestBatchEndsWithItsContext(t *testing.T) {
	s := newSink(t, newJetStream(t), everything())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.OnBatch(ctx, []informer.Event{event(informer.Added, "a", "1", 10)})
	if err != nil { // the answer may be there already
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestStreamHasTheNewestStateOfEachObject(t *testing.T) {
	js := newJetStream(t)
	s := newSink(t, js, jetstream.StreamConfig{Name: "configmaps"})
	for _, e := range []informer.Event{
		event(informer.Added, "a", "1", 10), event(informer.Added, "b", "2", 10), event(informer.Added, "c.d", "3", 10),
		event(informer.Updated, "a", "4", 20), event(informer.Deleted, "b", "5", 10),
	} {
		require.NoError(t, s.OnBatch(t.Context(), []informer.Event{e}))
	}
	require.Equal(t, []string{"c.d 3", "a 4", "b 5 deleted"}, states(t, s))
	newest, err := s.stream.GetLastMsgForSubject(t.Context(), "configmaps.object.default.c%2Ed")
	require.NoError(t, err)
	require.Equal(t, "uid of c.d 3", newest.Header.Get(jetstream.MsgIDHeader))

	table, err := Read(t.Context(), s.stream, false)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"default/a": "4", "default/c.d": "3"}, versions(table))
	require.Equal(t, strings.Repeat("x", 20), string(table["default/a"].JSON))

	s = newSink(t, js, jetstream.StreamConfig{Name: "configmaps"})
	// No checkpoint has the deletion of b.
	require.Equal(t, map[string]string{"default/a": "4", "default/b": "5", "default/c.d": "3"}, known(s))
}

// A batch that fails may have been stored in part. The informer does not count it as acknowledged, so
// the checkpoint that is saved next does not have the deletions in it.
func TestCheckpointDuringFailuresMayLackDeletions(t *testing.T) {
	js := newJetStream(t)
	config := everything()
	config.MaxMsgSize = 1000
	s := newSink(t, js, config)
	deleted := event(informer.Deleted, "a", "2", 10)
	require.NoError(t, s.OnBatch(t.Context(), []informer.Event{event(informer.Added, "a", "1", 10)}))
	require.Error(t, s.OnBatch(t.Context(), []informer.Event{deleted, event(informer.Added, "b", "3", 2000)}))
	require.NoError(t, s.OnBatch(t.Context(), []informer.Event{event(informer.Added, "c", "4", 10)}))
	require.Equal(t, []string{"a 1", "a 2 deleted", "c 4"}, states(t, s))
	save(t, s, 'a', 10)
	s = newSink(t, js, config)
	require.Equal(t, map[string]string{"default/a": "2", "default/c": "4"}, known(s))

	require.Error(t, s.OnBatch(t.Context(), []informer.Event{deleted, event(informer.Added, "b", "3", 2000)}))
	require.NoError(t, s.OnBatch(t.Context(), []informer.Event{deleted}))
	require.NoError(t, s.OnBatch(t.Context(), []informer.Event{event(informer.Added, "b", "5", 10)}))
	save(t, s, 'a', 10)
	require.Equal(t, map[string]string{"default/b": "5", "default/c": "4"}, known(newSink(t, js, config)))
}

// save saves a checkpoint of so many bytes, and returns it.
func save(t *testing.T, s *Sink, fill byte, size int) string {
	content := strings.Repeat(string(fill), size)
	require.NoError(t, s.Save(t.Context(), func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	}))
	return content
}

func load(t *testing.T, s *Sink) string {
	r, err := s.Load(t.Context())
	require.NoError(t, err)
	content, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return string(content)
}

func TestCheckpointIsLoadedAsAWhole(t *testing.T) {
	js := newJetStream(t)
	s := newSink(t, js, everything())
	require.NoError(t, s.OnBatch(t.Context(), []informer.Event{event(informer.Added, "a", "1", 10)}))
	s = newSink(t, js, everything())
	_, err := s.Load(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	for i, size := range []int{1000 << 10, 10, 0, 1000} {
		want := save(t, s, byte('a'+i), size)
		require.True(t, want == load(t, s), "a checkpoint of %d bytes", size)
	}
}

func TestSaveThatFailsLeavesTheFormerCheckpoint(t *testing.T) {
	js := newJetStream(t)
	s := newSink(t, js, everything())
	require.NoError(t, s.OnBatch(t.Context(), []informer.Event{event(informer.Added, "a", "1", 10)}))
	s = newSink(t, js, everything())
	want := save(t, s, 'a', 1000)

	broken := errors.New("broken")
	require.ErrorIs(t, s.Save(t.Context(), func(w io.Writer) error {
		_, err := io.WriteString(w, "b")
		return errors.Join(err, broken)
	}), broken)
	require.Equal(t, want, load(t, s))

	require.ErrorIs(t, s.Save(t.Context(), func(w io.Writer) error {
		_, err := w.Write(make([]byte, 2<<20)) // more than the server takes in a message
		return err
	}), nats.ErrMaxPayload)
	require.Equal(t, want, load(t, s))
}

// The checkpoint of a stream that was lost or purged would say that all is delivered.
func TestCheckpointIsNotUsedWithoutTheStream(t *testing.T) {
	js := newJetStream(t)
	s := newSink(t, js, everything())
	require.NoError(t, s.OnBatch(t.Context(), []informer.Event{event(informer.Added, "a", "1", 10)}))
	save(t, s, 'a', 10)
	require.NoError(t, s.stream.Purge(t.Context()))
	s = newSink(t, js, everything())
	_, err := s.Load(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
}
