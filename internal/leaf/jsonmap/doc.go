// Package jsonmap decodes the JSON text of an object to the map of an unstructured object.
//
// A Decoder returns what utiljson.Unmarshal of apimachinery returns, which is what
// UnstructuredJSONScheme holds objects in: maps, slices, strings, bools, nil, int64, and float64
// for numbers with a point or an exponent, or beyond int64. The last of repeated keys counts.
// Letter case counts. Invalid UTF-8 and lone surrogates become U+FFFD. Values may be nested 10,000
// deep. Whether a text is refused is the same too; fuzz targets hold all of this.
//
// It is faster for three reasons:
//
//   - It is one pass. Each value goes into its map as it is read, and the map has room for as many
//     members as the last object of its place had, so that it hardly ever grows.
//   - Strings that come again, such as field names, are allocated once. A Decoder remembers short
//     strings, and the interface values of them, within a bound. It is meant for objects of one
//     kind, whose strings repeat.
//   - Members of an object are expected in the order in which the last object of its place had
//     them, with the same values. That is one comparison for each, and no hashing.
//
// Maps and slices are never shared. A decoded object refers to no memory of its text, and none of
// its strings is part of a larger one.
package jsonmap
