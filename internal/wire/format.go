package wire

import (
	"fmt"
	"mime"

	"k8s.io/apimachinery/pkg/runtime"
)

// Format says how objects are written on the wire.
type Format uint8

const (
	JSON Format = iota
	Protobuf
	Formats // how many there are
)

func (f Format) String() string {
	if f == Protobuf {
		return "protobuf"
	}
	return "json"
}

// FormatOf reads a Content-Type header. Parameters (charset, stream=watch, as=…) do not matter here. Whatever is neither
// JSON nor protobuf, an HTML page of a proxy for instance, is an *UnknownFormatError.
func FormatOf(contentType string) (Format, error) {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && media == runtime.ContentTypeJSON:
		return JSON, nil
	case err == nil && media == runtime.ContentTypeProtobuf:
		return Protobuf, nil
	}
	return JSON, &UnknownFormatError{ContentType: contentType}
}

// UnknownFormatError is a Content-Type that no reader exists for.
type UnknownFormatError struct{ ContentType string }

func (e *UnknownFormatError) Error() string {
	return fmt.Sprintf("wire: Content-Type %q is neither %s nor %s", e.ContentType, runtime.ContentTypeJSON, runtime.ContentTypeProtobuf)
}
