// Package known is what an informer knows of the objects that its handler has acknowledged: their
// keys and versions, and the cluster that they are of.
//
// Versions is the table behind a ResourceVersionStorage. The delta queue marks and writes it, the
// delivery settles it, and the keeper saves and loads it. Changes that users make beside a running
// informer are edits, which are counted: they make the saved resource version unsafe.
package known
