// Package keytable remembers, for every key, which version of its object the
// consumer has acknowledged, in a few tens of bytes and without a pointer per
// key.
//
//	table := keytable.New()
//	generation := table.Begin()
//	version := keytable.Version{ResourceVersion: "17", UID: uid}
//	table.Set("default/web-7d9f-x2x4z", version, generation)
//	table.Show("default/web-7d9f-x2x4z", version, generation, generation) // a list showed it
//	keys, _ := table.UnmarkedFrom(0, generation, math.MaxInt)
//	for _, key := range keys { // none
//		table.Delete(key)
//	}
//
// # The mouth
//
// New makes a Table, and Set, Delete and Get are those of a map. Begin, Show and UnmarkedFrom mark
// what a list shows, and find what it did not show. Compare is Get without an allocation. Version is
// what is stored, and Binary is the same without strings, for checkpoints. A Loader fills a table.
// LendFrom and TextsFrom walk one in parts, between which its owner can let go of a lock.
//
// You may stop reading here, or after the next section: no caller depends on the layout. TestRandom
// compares the table with a plain map, and the build tag keytableinvariants has the table check
// itself after each change.
//
// # Words
//
// A key is "namespace/name", or "name" for a cluster-scoped object. A version
// is the resource version and the UID that the object had. A generation is one
// complete pass over the server's set: the keys that it shows are marked with
// its number, and those left unmarked at its end are gone from the server
// (mark, then sweep, in place).
//
// A stem is the beginning of keys that is stored once for all of them, from the
// second on: all up to the last dash of the name, or else a namespace with its slash.
//
// An entry is the bytes that stand for one key, a segment a small hash table of
// entries, a page the unit of memory of a segment, a slab the piece of
// memory from which pages are cut.
//
// # Layout
//
// A table of up to 32 keys has its entries in one piece of memory, without stems, and looks at all
// of them to find one: there may be many such tables, and all else would be larger than the
// entries. Before each are its size, and 8 bits of its key's hash. Of a larger table, the first
// bits of a key's hash choose its segment, through a directory that doubles (extendible hashing):
//
//	directory            segment                    entries
//	+-----+              +-------------+            +---------------------+
//	| 000 |--+---------->| slots:      |   +------->| pages of 1 KiB, 64  |
//	| 001 |--+           | 16 bit tag  |   |        | at most: 16 bits    |
//	| 010 |----> ...     | 16 bit ref  |---+        | find an entry       |
//	+-----+              +-------------+            +---------------------+
//
// A segment that is full splits in two, which moves some 2000 entries and
// nothing else, so that memory grows by a page at a time, and no call takes much
// longer than others. The place of a deleted entry is for the next one of its size; where
// such places are many, their segment is compacted. All memory comes in slabs, and a slab has no
// pointers: the garbage collector has nothing to look at.
//
// An entry:
//
//	  0       1      2      5      5+t         5+t+r        5+t+r+u
//	+-------+------+------+------+-----------+------------+
//	| kinds | mark | stem | text | resource  | UID        |
//	|       |      |      |      | version   |            |
//	+-------+------+------+------+-----------+------------+
//
//	kinds    how the three that follow the stem are written: bits 0 to 3 the
//	         resource version, 4 and 5 the UID, 6 and 7 the text
//	mark     the newest generation that showed the key, counted from that of its
//	         segment
//	stem     the stem with which the key begins, 0 for none
//	text     the rest of the key: the five letters that Kubernetes puts at the end
//	         of the names of pods in three bytes; anything else behind its length,
//	         four characters in three bytes where all are of the 40 that names are
//	         made of, else as it is
//	version  a number from 0 to 2^64-1 without its leading zero bytes, or, of
//	         anything else, the length and the bytes
//	UID      the 16 bytes of a UUID, or length and bytes, or nothing
//
// What is too long for an entry is kept as a Go string beside the table. Nothing
// like it comes from a Kubernetes API server.
//
// A stem:
//
//	  0      3      6       7      7+t
//	+------+------+-------+------+
//	| next | refs | chars | text |
//	+------+------+-------+------+
//
//	next     the next stem of its bucket
//	refs     the entries that name it
//	chars    the length of the text
//	text     as it is: a comparison of bytes is the fastest there is
package keytable
