package deltaqueue_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/engine/deltaqueue"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// forgetful is a table that loses a key to another user as soon as the queue
// has looked at it, as users of a ResourceVersionStorage may.
type forgetful struct{ *keytable.Table }

func (f forgetful) Get(key string) (keytable.Version, bool) {
	version, ok := f.Table.Get(key)
	f.Table.Delete(key)
	return version, ok
}

// Shown keeps no key, also where it notes the UID of an object whose key was deleted
// meanwhile.
func TestShownKeepsNoKey(t *testing.T) {
	table := keytable.New()
	q := deltaqueue.New(deltaqueue.Options{Known: forgetful{table}, SkipUnchanged: true})
	table.Set("a/1", keytable.Version{ResourceVersion: "5"}, 0)
	q.BeginGeneration()
	lent := []byte("a/1")
	shown(q, unsafe.String(&lent[0], len(lent)), keytable.Version{ResourceVersion: "5", UID: "u"})
	copy(lent, "b/2")
	for key := range table.All() {
		require.Equal(t, "a/1", key)
	}
}
