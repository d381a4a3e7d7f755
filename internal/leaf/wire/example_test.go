package wire_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rvinformer/informer/internal/leaf/wire"
)

// A list is read item by item. An item that cannot be read is an *ItemError, and the next one follows.
func ExampleNewListReader() {
	body := strings.NewReader(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1700"},"items":[
		{"metadata":{"namespace":"default","name":"web","uid":"u1","resourceVersion":"17"},"spec":{}},
		{"metadata":{"namespace":"default"}},
		{"metadata":{"namespace":"default","name":"db","uid":"u2","resourceVersion":"21"}}]}`)
	list := wire.NewListReader(body, wire.JSON, wire.Options{})
	for {
		item, err := list.Next()
		var lost *wire.ItemError
		switch {
		case err == io.EOF:
			fmt.Println("complete at", list.Meta().ResourceVersion)
			return
		case errors.As(err, &lost):
			fmt.Printf("item %d is lost: %v\n", lost.Index, lost.Reason)
			continue
		case err != nil:
			fmt.Println("the list is cut:", err)
			return
		}
		fmt.Printf("%s/%s in version %s, %d bytes\n", item.Namespace, item.Name, item.ResourceVersion, len(item.Bytes))
	}
	// Output:
	// default/web in version 17, 93 bytes
	// item 1 is lost: object without a name
	// default/db in version 21, 82 bytes
	// complete at 1700
}

// A list that ends too early is never complete, so that it deletes nothing.
func ExampleNewListReader_cut() {
	body := strings.NewReader(`{"kind":"PodList","items":[{"metadata":{"name":"web"}},{"metadata":{"na`)
	list := wire.NewListReader(body, wire.JSON, wire.Options{})
	item, err := list.Next()
	fmt.Println(string(item.Name), err)
	_, err = list.Next()
	fmt.Println(errors.Is(err, io.ErrUnexpectedEOF))
	// Output:
	// web <nil>
	// true
}

// A watch is read event by event. A bookmark has a resource version and no object.
func ExampleNewWatchReader() {
	body := strings.NewReader(`{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"web","resourceVersion":"18"}}}
{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"25"}}}
`)
	events := wire.NewWatchReader(body, wire.JSON, wire.Options{})
	for {
		event, err := events.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %q at %s\n", event.Type, event.Name, event.ResourceVersion)
	}
	// Output:
	// ADDED "web" at 18
	// BOOKMARK "" at 25
	// EOF
}
