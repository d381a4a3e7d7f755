package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer"
)

// Bulk is a BatchHandler of *informer.RawObject that keeps the objects in an index of Elasticsearch,
// OpenSearch, or another server with their bulk API: a document for each, whose id is the UID.
type Bulk struct {
	// URL is that of the bulk API: http://localhost:9200/pods/_bulk.
	URL string
	// Client sends the requests. Default: http.DefaultClient.
	Client *http.Client
}

// OnBatch puts a batch into the index with one request. The server answers for each item.
func (b Bulk) OnBatch(ctx context.Context, events []informer.Event) error {
	body, err := b.body(events)
	if err != nil {
		return err
	}
	items, err := b.send(ctx, body)
	if err != nil {
		return err // the server is away, or refuses the request: no event is at fault
	}
	if len(items) != len(events) {
		return fmt.Errorf("%d items are answered, of %d", len(items), len(events))
	}
	return failedOf(events, items)
}

// failedOf names the events that the server has not taken in.
func failedOf(events []informer.Event, items []item) error {
	var failed informer.FailedEvents
	for i, item := range items {
		switch {
		case item.Status < 300:
		case item.Status == http.StatusNotFound && events[i].Type == informer.Deleted: // it was deleted before
		case item.Status == http.StatusTooManyRequests, item.Status >= 500:
			failed = append(failed, informer.FailedEvent{Index: i, Err: item.err(), Later: true})
		default:
			failed = append(failed, informer.FailedEvent{Index: i, Err: item.err()})
		}
	}
	if failed != nil {
		return failed
	}
	return nil
}

// item is the answer for an event.
type item struct {
	Status int             `json:"status"`
	Error  json.RawMessage `json:"error"`
}

func (i item) err() error { return fmt.Errorf("%d: %s", i.Status, i.Error) }

// body has two lines for an object that is there, an action and the object, and one for a deletion.
func (Bulk) body(events []informer.Event) (*bytes.Buffer, error) {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, event := range events {
		action := "index"
		if event.Type == informer.Deleted {
			action = "delete"
		}
		id := event.Object.(metav1.Object).GetUID()
		if err := encoder.Encode(map[string]any{action: map[string]any{"_id": id}}); err != nil {
			return nil, err
		}
		if event.Type == informer.Deleted {
			continue
		}
		raw := event.Object.(interface{ Bytes() []byte })
		if err := json.Compact(&lines, raw.Bytes()); err != nil { // a line has no end within it
			return nil, err
		}
		lines.WriteByte('\n')
	}
	return &lines, nil
}

// send returns the answers for the items of a request.
func (b Bulk) send(ctx context.Context, body io.Reader) (items []item, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	client := b.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	var answer struct {
		Items []map[string]item `json:"items"` // by action
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	for _, actions := range answer.Items {
		for _, item := range actions {
			items = append(items, item)
		}
	}
	return items, nil
}
