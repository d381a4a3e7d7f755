package wire

import (
	"fmt"
	"mime"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/redact"
)

// Format says how objects are written on the wire.
type Format uint8

const (
	JSON Format = iota
	Protobuf
	Formats // how many there are
	// Undeclared is for an answer without a Content-Type, whose beginning tells its format.
	Undeclared
)

func (f Format) String() string {
	switch f {
	case Protobuf:
		return "protobuf"
	case Undeclared:
		return "undeclared"
	}
	return "json"
}

// shownBytes of an unknown Content-Type are shown.
const shownBytes = 256

// FormatOf reads a Content-Type header. Parameters (charset, stream=watch, as=…) do not matter
// here. Without the header, the format is Undeclared. Whatever is neither JSON nor protobuf, an HTML
// page of a proxy for instance, is an ErrContentType.
func FormatOf(contentType string) (Format, error) {
	if contentType == "" {
		return Undeclared, nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && media == runtime.ContentTypeJSON:
		return JSON, nil
	case err == nil && media == runtime.ContentTypeProtobuf:
		return Protobuf, nil
	}
	return JSON, fmt.Errorf("%w: %q", api.ErrContentType, redact.Short(contentType, shownBytes))
}
