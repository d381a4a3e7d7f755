package informertest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/informertest"
)

// item is one item of a list, or the object of one event: an error where it is no object.
type item struct {
	name string
	size int
	err  error
}

// itemsOf reads every object on its own, as a careful reader does.
func itemsOf(texts [][]byte, inProtobuf bool) (items []item) {
	for _, text := range texts {
		var o metav1.PartialObjectMetadata
		var err error
		if inProtobuf {
			err = o.Unmarshal(text)
		} else {
			err = json.Unmarshal(text, &o)
		}
		items = append(items, item{o.Name, len(text), err})
	}
	return items
}

func TestFaultItems(t *testing.T) {
	everyTransport(t, func(t *testing.T, s *informertest.Server, client *http.Client) {
		for i := range 5 {
			_, err := s.Create(widgets, widget("a", fmt.Sprint("w", i), 1))
			require.NoError(t, err)
		}
		for _, form := range everyForm(s, configMapsPath, widgetsPath) {
			read := func() []item { return itemsOf(form.read(t, s, client), form.isProtobuf()) }
			whole := read()
			require.Len(t, whole, 5)

			inject(t, s, "garbage=2")
			inject(t, s, "oversize=4,5000")
			for range 4 { // of the kinds of garbage
				spoiled := read()
				require.Len(t, spoiled, 5)
				require.Error(t, spoiled[1].err)
				require.Equal(t, whole[3].name, spoiled[3].name)
				require.Greater(t, spoiled[3].size, whole[3].size+5000)
				require.Less(t, spoiled[3].size, whole[3].size+5200)
				for _, i := range []int{0, 2, 4} {
					require.Equal(t, whole[i], spoiled[i], form)
				}
			}
			s.Heal()
		}
	})
}

func TestFaultGarbageMeetsWatchesUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		w := follow(t, s, configMapsPath, "timeoutSeconds", "600")
		w.want(fiveAdded...)
		inject(t, s, "garbage=2")
		create(t, s, configMap("c", "1", "x"), configMap("c", "2", "x"), configMap("c", "3", "x"))
		w.want("ADDED 1 7")
		line, err := w.in.ReadString('\n')
		require.NoError(t, err)
		require.Regexp(t, `^{"type":"ADDED","object":("garbage"|\["garbage"\]|{"metadata":7})}`, line)
		w.want("ADDED 3 9")
	})
}

// What an unversioned event shows beside its version is the object as it is.
func TestFaultUnversioned(t *testing.T) {
	inBubble(t, func(t *testing.T, s *informertest.Server) {
		inject(t, s, "watch unversioned=1")
		w := follow(t, s, configMapsPath, "timeoutSeconds", "600")
		line, err := w.in.ReadString('\n')
		require.NoError(t, err)
		var event struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		require.NoError(t, json.Unmarshal([]byte(line), &event))
		require.Equal(t, "ADDED", event.Type)
		require.Equal(t, "1", event.Object.Name)
		require.NotEmpty(t, event.Object.UID)
		require.Empty(t, event.Object.ResourceVersion)
	})
}
