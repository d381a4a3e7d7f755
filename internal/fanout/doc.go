// Package fanout lets several readers follow one watch, each at its own pace.
//
//	watch ──▶ trunk: the newest events ──▶ tap, tap, tap …
//	watch ──▶ trunk ─ ─ ─ joins ─ ─ ┘
//
// A Hub is for the watches of one set of objects. A trunk is one of them, of which the
// newest events are kept for as long as somebody needs them, and a Tap is one reader.
//
// Who wants to read from a resource version on that a trunk still has, or is yet to
// come to, joins it. Otherwise he brings a watch of his own, which is another trunk until
// it has come to where the other one is, and then ends: its readers go on there. So there is
// one watch in the end, wherever the readers began. It is the older one that stays, unless a
// reader doubts it, and none is joined that is behind.
//
// A reader that falls behind holds the watch up only while nobody waits for more. Else
// he lapses: he is told to bring a watch of his own, from where he is, and is back on the
// common one when he has caught up. Nobody misses an event or needs a list for that.
package fanout
