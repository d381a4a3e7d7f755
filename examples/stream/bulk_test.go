package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
)

// index is a server with a bulk API. It answers an item with what status returns, and takes it in if
// that is below 300.
type index struct {
	status    func(id, document string) int
	requests  int
	documents map[string]string // by id
}

func (x *index) RoundTrip(request *http.Request) (*http.Response, error) {
	x.requests++
	var answer struct {
		Items []map[string]item `json:"items"`
	}
	for decoder := json.NewDecoder(request.Body); decoder.More(); {
		var action map[string]struct {
			ID string `json:"_id"`
		}
		if err := decoder.Decode(&action); err != nil {
			return nil, err
		}
		var document json.RawMessage
		_, isDeletion := action["delete"]
		if !isDeletion {
			if err := decoder.Decode(&document); err != nil {
				return nil, err
			}
		}
		for name, about := range action {
			_, exists := x.documents[about.ID]
			status := x.status(about.ID, string(document))
			switch {
			case status >= 300:
			case isDeletion && !exists:
				status = http.StatusNotFound
			case isDeletion:
				delete(x.documents, about.ID)
			default:
				x.documents[about.ID] = string(document)
			}
			answer.Items = append(answer.Items, map[string]item{name: {Status: status, Error: json.RawMessage(`"why"`)}})
		}
	}
	text, err := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusOK, Body: readCloser{bytes.NewReader(text)}, Request: request}, err
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

func (x *index) bulk() Bulk {
	return Bulk{URL: "http://index/pods/_bulk", Client: &http.Client{Transport: x}}
}

// raw is an event of an object with a text, whose id is "uid of NAME".
func raw(kind informer.EventType, name, text string) informer.Event {
	e := event(kind, name, "1", 0)
	e.Object.(*object).content = text
	return e
}

// Each item is taken in, refused, or put off by itself.
func TestBulkNamesTheItemsThatFail(t *testing.T) {
	statuses := map[string]int{"uid of bad": http.StatusBadRequest, "uid of busy": http.StatusTooManyRequests}
	x := &index{documents: map[string]string{}, status: func(id, _ string) int { return max(http.StatusOK, statuses[id]) }}
	err := x.bulk().OnBatch(t.Context(), []informer.Event{
		raw(informer.Added, "a", "{\n\"a\": 1}\n"), raw(informer.Added, "bad", "{}"), raw(informer.Added, "busy", "{}"),
		raw(informer.Deleted, "gone", ""), raw(informer.Updated, "b", `{"b":2}`),
	})
	var failed informer.FailedEvents
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed, 2)
	require.Equal(t, []any{1, false, 2, true}, []any{failed[0].Index, failed[0].Later, failed[1].Index, failed[1].Later})
	require.EqualError(t, failed[0].Err, `400: "why"`)
	require.Equal(t, map[string]string{"uid of a": `{"a":1}`, "uid of b": `{"b":2}`}, x.documents)
	require.NoError(t, x.bulk().OnBatch(t.Context(), []informer.Event{raw(informer.Deleted, "a", "")}))
	require.Len(t, x.documents, 1)
}

// A server that answers a third of the items with 429 gets all objects in few requests. The one that
// it refuses is the only dead letter.
func TestBusyItemsAreNoDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := informertest.NewServer(informertest.Options{InMemory: true})
		defer cluster.Close()
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		create := func(name string) {
			_, err := cluster.Create(configMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
			require.NoError(t, err)
		}
		for n := range 300 {
			create(fmt.Sprint("good-", n))
		}
		create("bad")
		dice := rand.New(rand.NewPCG(1, 2))
		x := &index{documents: map[string]string{}, status: func(_, document string) int {
			switch {
			case strings.Contains(document, `"name":"bad"`):
				return http.StatusBadRequest
			case dice.IntN(10) < 3:
				return http.StatusTooManyRequests
			}
			return http.StatusOK
		}}
		factory, err := informer.NewDynamicListerWatcherFactory(cluster.Config())
		require.NoError(t, err)
		i := informer.NewResourceVersionInformer("configmaps", informer.InformerConfig{
			ListerWatcher: factory.ForResource("", configMaps),
			ExampleObject: &informer.RawObject{},
			BatchHandler:  informer.IgnoreSynced(x.bulk()),
			MaxAttempts:   5,
			ErrorHandler:  func(*informer.Reflector, error) {},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); i.RunWithContext(ctx) }()
		defer func() { cancel(); <-ended }()

		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Len(t, x.documents, 300)
		require.Less(t, x.requests, 300) // how many depends on how the list is divided into batches
		letters := i.DeadLetters()
		require.Len(t, letters, 1)
		require.Equal(t, "default/bad", letters[0].Key)
		require.NoError(t, cluster.Delete(configMaps, "default", "bad"))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, i.DeadLetters())
	})
}
