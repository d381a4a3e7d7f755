package wire

import (
	"fmt"
	"mime"
)

// Format says how objects are written on the wire.
type Format uint8

const (
	JSON Format = iota
	Protobuf
	Formats // how many there are
)

// The media types by which a server names the formats, without parameters.
const (
	JSONMediaType     = "application/json"
	ProtobufMediaType = "application/vnd.kubernetes.protobuf"
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
	case err == nil && media == JSONMediaType:
		return JSON, nil
	case err == nil && media == ProtobufMediaType:
		return Protobuf, nil
	}
	return JSON, &UnknownFormatError{ContentType: contentType}
}

// UnknownFormatError is a Content-Type that no reader exists for.
type UnknownFormatError struct{ ContentType string }

func (e *UnknownFormatError) Error() string {
	return fmt.Sprintf("wire: Content-Type %q is neither %s nor %s", e.ContentType, JSONMediaType, ProtobufMediaType)
}
