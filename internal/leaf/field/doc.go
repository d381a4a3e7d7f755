// Package field finds one field of an encoded object, without decoding the object.
//
//	value, why := field.InJSON(text, "spec.nodeName")
//	value, why = field.Of(reflect.TypeFor[*v1.Pod]()).InProtobuf(message, `metadata.labels.app\.kubernetes\.io/name`)
//
// A path is one of package fieldpath. It does not lead into arrays. The value is that which the
// object's unstructured form has, in JSON and in protobuf alike: times, quantities, and bytes are
// strings, and null is absent. Of repeated members, the last one counts.
//
// A protobuf message does not say what its fields are called. A Type has that from a generated Go
// type. Metadata has the metadata of objects of any type.
//
// Found values are lent: strings, objects and arrays are parts of the object, except for strings
// that the object has in another form, and those of an IntOrString. Nothing else is allocated.
package field
