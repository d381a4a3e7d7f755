// Package sharing tests informers whose handlers share watches and lists, and informers of the shards
// of a set.
package sharing
