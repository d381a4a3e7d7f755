package objectcache

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// objects is where an Informer keeps its objects: a Store has them encoded, a decodedStore decoded.
type objects interface {
	cache.Indexer
	// Len returns how many objects there are.
	Len() int
	// encodeItem returns an object that was read, in the form in which it is kept. The item's bytes
	// stay its reader's. The error is an *informer.ItemError.
	encodeItem(it object.Item) (encoded, error)
	// encodeObject does the same with an object that is decoded, and that was read as one of a kind, if that is
	// known.
	encodeObject(obj runtime.Object, read metav1.TypeMeta) (encoded, error)
	// put keeps an object, in the place of the one of its key.
	put(e encoded) change
	// remove forgets the object of a key, if there is one.
	remove(key string) change
	// begin begins a generation, which is to be ended or abandoned.
	begin() generation
	// version returns the version of the object of a key, and whether there is one.
	version(key string) (keytable.Version, bool)
	// unchanged reports whether there is an object in this version.
	unchanged(key string, v keytable.Version) bool
	// lendFrom lends visit about most of the next keys and resource versions, or all of them, and
	// returns where to go on: 0 at the end and at the beginning. Visit must not use the objects.
	lendFrom(cursor keytable.Cursor, most int, visit func(key string, v *keytable.Binary)) keytable.Cursor
	// detached returns a handle of an object that is not kept.
	detached(e encoded) Stored
	// shrink gives back memory after a peak, a part at a time, and reports whether more is to be
	// done. No batch may be in use.
	shrink() (more bool)
	// all returns a batch of all objects, in one state.
	all() *batch
}

var _, _ objects = (*Store)(nil), (*decodedStore)(nil)

// generation is one complete pass over the server's set. What differs from what is kept is staged
// aside, and applied at once at the end, or not at all. Keys and versions may be lent.
type generation interface {
	// show reports whether the object is kept in this version, and was read as bytes with this
	// checksum. If so, it stays; if not, showSame, put or keep follows.
	show(key string, v keytable.Version, sum uint32) bool
	// showSame shows an object that is kept in this version if it is the same in everything, and
	// reports whether it is. The checksum of e is remembered then.
	showSame(e encoded) bool
	// put stages an object that is new or has changed.
	put(e encoded)
	// drop takes back what was shown or staged of a key, which the server has deleted meanwhile.
	drop(key string)
	// keep lets the object of a key stay as it is, which the set has but which could not be read.
	keep(key string)
	// known returns the newest version of a key, the staged one or the kept one, and whether the
	// generation has told of the key. It reports whether there is one.
	known(key string) (v keytable.Version, told, ok bool)
	// deletes reports whether end would delete an object, if it were complete.
	deletes() bool
	// end keeps what the generation showed. It deletes what was dropped and not shown again and, if
	// complete, all that was not shown. It returns the changes, in the order of the list and
	// deletions last, which are valid until the next write.
	end(resourceVersion string, complete bool) iter.Seq[change]
	// abandon changes nothing. It does nothing after end.
	abandon()
}
