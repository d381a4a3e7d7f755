package source

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/server"
)

const (
	// listSuffix ends the kinds of lists, but for some of custom resources.
	listSuffix = "List"
	// anyList is the kind of a list whose items say themselves what they are.
	anyList = "List"
	// partialList is the kind of a list of metadata.
	partialList = "PartialObjectMetadataList"
)

// listMemory is what the lists of a resource have said of themselves. An answer that says
// something else is none of its lists, and must not count as complete: an empty one would delete
// everything.
type listMemory struct {
	mu sync.Mutex
	// kind is that of the last list with objects, empty before the first, and where it was
	// anyList.
	kind string
	// odd counts the odd lists in a row, nil for none, and believed is what the server was believed in the end. A
	// watch-list says nothing of lists: its mark may have a version where they have none.
	odd      *listwatch.Insistence
	believed listwatch.Oddity
}

// learn notes the kind of a list with objects.
func (m *listMemory) learn(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kind != "" && kind != anyList {
		m.kind = kind
	}
}

// refused forgets the kind if the server has no such resource: what comes back under its name may be
// another one.
func (m *listMemory) refused(err error) {
	if !server.LacksResource(err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kind = ""
}

func (m *listMemory) known() (kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kind
}

// heard notes a complete list, whether it had objects, and when. It reports whether the list is to be
// believed because the server shows no other ones.
func (m *listMemory) heard(odd listwatch.Oddity, objects bool, at time.Time) (believed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if odd != listwatch.Plain && odd == m.believed && odd != listwatch.Backward {
		return true
	}
	if odd == listwatch.Plain {
		m.believed, m.odd = odd, nil
		return false
	}
	if m.odd == nil {
		m.odd = &listwatch.Insistence{}
	}
	if *m.odd = m.odd.Heard(odd, !objects, at); !m.odd.IsEnough() {
		return false
	}
	m.believed, m.odd = odd, nil
	return true
}

// kindCheck checks the kind of a list while its items are read, which may come before it.
type kindCheck struct {
	*Source
	// items tells that there were some, and proven that one said itself that it is as expected.
	items, proven bool
}

func (s *Source) newKindCheck() kindCheck {
	return kindCheck{Source: s}
}

// check checks the kind of a list. Where the kind of the objects is not known, it is that of
// earlier lists, and at first that of any list.
func (c *kindCheck) check(kind string) error {
	want := c.Memory.lists.known()
	item := c.Expected.ItemKind()
	partial := c.Expected.Partial()
	switch {
	case kind == anyList, kind == partialList && partial, kind == want && want != "":
		return nil
	case item != "" && kind == item+listSuffix:
		return nil
	case item == "" && want == "" && strings.HasSuffix(kind, listSuffix):
		return nil
	case item != "":
		want = item + listSuffix
	case want == "":
		want = "list"
	}
	return fmt.Errorf("%w: it is a %q, expected a %s", api.ErrNotList, kind, want)
}

// item is called before each item, with the kind of the list if that is known, and whether the item
// says its own. The error says that the kind is wrong, where the items would not show it.
func (c *kindCheck) item(kind string, says bool) error {
	first := !c.items
	c.items = true
	if first && kind != "" && !says && c.Expected.ItemKind() == "" {
		return c.check(kind)
	}
	return nil
}

// end checks the kind of a list that was read. The definition of a custom resource may name its
// list as it likes; the items tell then.
func (c *kindCheck) end(kind string) error {
	trusted := c.proven && (c.Expected.ItemKind() != "" || c.Memory.lists.known() == "")
	if err := c.check(kind); err != nil && !trusted {
		return err
	}
	if c.items {
		c.Memory.lists.learn(kind)
	}
	return nil
}

// endInitialEvents checks the bookmark that ends the initial events of a watch-list. One that does
// not say its kind counts.
func (c *kindCheck) endInitialEvents(kind string) error {
	if kind != "" {
		if c.check(kind+listSuffix) != nil {
			return fmt.Errorf("%w: the bookmark that ends its initial events is of a %s", api.ErrNotWatch, kind)
		}
		if c.items {
			c.Memory.lists.learn(kind + listSuffix)
		}
	}
	return nil
}

// checkListType checks the Go type of a list.
func (s *Source) checkListType(list runtime.Object) error {
	if items, want := itemType(list), s.Expected.Type(); items != nil && want != nil && items != want {
		return fmt.Errorf("%w: it is a %T, whose items are no %v", api.ErrNotList, list, want)
	}
	return nil
}

// itemType is the Go type of the items of a list, nil where they may be of several.
func itemType(list runtime.Object) reflect.Type {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil
	}
	slice := reflect.TypeOf(items).Elem()
	if slice.Kind() != reflect.Slice {
		return nil
	}
	switch item := slice.Elem(); {
	case item == reflect.TypeFor[runtime.RawExtension](), item == reflect.TypeFor[unstructured.Unstructured]():
		return nil
	case item.Kind() == reflect.Struct:
		return reflect.PointerTo(item)
	case item.Kind() == reflect.Pointer:
		return item
	default:
		return nil
	}
}
