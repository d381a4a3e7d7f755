package objectcache

import (
	"hash/crc32"

	"github.com/rvinformer/informer/internal/engine/object"
)

// checksum returns a checksum of the bytes of an object that was read, 0 if it was read decoded.
//
// A server may have another content for the same version: when its definition has got a default,
// when a conversion webhook was mended, and when the server itself was upgraded. A list shows it,
// and the checksum tells so before the object is decoded. A new checksum may still be of the same
// object, because a list and a watch may write it in different ways: so the objects are compared
// then.
func checksum(it object.Item) uint32 {
	if it.Lent == nil {
		return 0
	}
	return max(1, crc32.Checksum(it.Lent.Bytes, castagnoli))
}
