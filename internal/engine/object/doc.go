// Package object has one object of a resource on its way from the server to the consumer.
//
// An Item is an object as it was read: decoded by a ListerWatcher of others, or Lent by a reader of
// the wire. Copying a Lent object makes a Raw: its bytes with memory of their own, often of a Pool,
// and its identity. A Form says how objects are asked for on the wire, and how a Raw is decoded for
// the consumer. Expected says which objects are wanted. Key names an object, and Tombstone stands
// for one that is gone.
//
// The packages that read make Items, and the packages that keep or deliver them make the rest.
package object
