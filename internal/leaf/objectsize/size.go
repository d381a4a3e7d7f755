// Package objectsize estimates what an object takes, for an account of many.
package objectsize

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of returns about the number of bytes of obj's encoding: exactly that of its
// protobuf encoding for the types that have one, and the length of the JSON
// text, without spaces, for unstructured objects. Others count as 0.
func Of(obj interface{}) int64 {
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		return value(obj.Object)
	case interface{ Size() int }: // generated for every API type of Kubernetes
		return int64(obj.Size())
	}
	return 0
}

// number is about the length of a number or a boolean.
const number = 5

func value(v interface{}) int64 {
	switch v := v.(type) {
	case string:
		return int64(len(v)) + 2
	case map[string]interface{}:
		size := int64(2)
		for key, element := range v {
			size += int64(len(key)) + 4 + value(element)
		}
		return size
	case []interface{}:
		size := int64(2)
		for _, element := range v {
			size += 1 + value(element)
		}
		return size
	default:
		return number
	}
}
