// Package fanout lets several readers read one list, and follow one watch, each at its own pace.
//
//	watch ──▶ trunk: the newest events ──▶ tap, tap, tap …
//	watch ──▶ trunk ─ ─ ─ joins ─ ─ ┘
//
// A Hub is for the watches of one set of objects. A trunk is one of them: its
// newest events are kept for as long as a reader needs them. A Tap is one reader.
//
// A reader joins a trunk that still has the resource version to begin from, or is yet to
// come to it. Otherwise it brings a watch of its own, which is another trunk until
// it has come to where the other one is, and then ends: its readers go on there. So there is
// one watch in the end, wherever the readers began. It is the older one that stays, unless a
// reader doubts it, and none is joined that is behind.
//
// Without this merging, each reader that begins with a watch-list (a list and a watch in
// one) would keep a watch of its own until the server ends it, after 5 to 10 minutes.
//
// A reader that falls behind holds the watch up only while no other waits for more. Else
// it lapses: it is told to bring a watch of its own, from where it is, and is back on the
// common one when it has caught up. No reader misses an event or needs a list for that.
//
// Readers that ask for all objects at about the same time gather, and read one list. The list is a
// trunk too. Nobody joins it once it has begun, because its objects come in no order of versions. A
// watch-list is a watch like others when its initial events have ended. A reader that lapses before
// that lists for itself.
package fanout
