package informertest

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// input is the body of a request.
type input struct {
	media media
	text  []byte
}

func readInput(req *http.Request) (input, error) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return input{}, apierrors.NewBadRequest(fmt.Sprintf("reading the body: %v", err))
	}
	in := input{text: text}
	contentType := req.Header.Get("Content-Type")
	if len(text) == 0 || contentType == "" {
		return in, nil
	}
	switch mediaType, _, err := mime.ParseMediaType(contentType); {
	case err != nil:
		return in, unsupportedMediaType(contentType)
	case mediaType == runtime.ContentTypeProtobuf:
		in.media = mediaProtobuf
	case mediaType != runtime.ContentTypeJSON:
		return in, unsupportedMediaType(contentType)
	}
	return in, nil
}

// message is what the envelope of a protobuf body holds.
func (in input) message() (runtime.Object, error) {
	obj, _, err := envelope.Decode(in.text, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not valid protobuf: %v", err))
	}
	return obj, nil
}

func (in input) unmarshalJSON(into any) error {
	if err := json.Unmarshal(in.text, into); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is not valid JSON: %v", err))
	}
	return nil
}

// readObject reads the object to be written, as its Go type if it came in protobuf.
func readObject(req *http.Request, r Resource) (runtime.Object, error) {
	in, err := readInput(req)
	switch {
	case err != nil:
		return nil, err
	case len(in.text) == 0:
		return nil, apierrors.NewBadRequest("the request has no body: it must hold the object")
	case in.media == mediaProtobuf && !r.hasProtobuf():
		return nil, unsupportedMediaType(runtime.ContentTypeProtobuf)
	case in.media == mediaProtobuf:
		return in.message()
	}
	var text json.RawMessage
	if err := in.unmarshalJSON(&text); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not an object: %v", err))
	}
	return u, nil
}

// readDeleteOptions reads the body of a deletion, which may be missing.
func readDeleteOptions(req *http.Request) (*metav1.DeleteOptions, error) {
	opts := &metav1.DeleteOptions{}
	in, err := readInput(req)
	if err != nil || len(in.text) == 0 {
		return opts, err
	}
	if in.media != mediaProtobuf {
		return opts, in.unmarshalJSON(opts)
	}
	obj, err := in.message()
	if err != nil {
		return opts, err
	}
	opts, ok := obj.(*metav1.DeleteOptions)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body of a deletion is a DeleteOptions, not a %T", obj))
	}
	return opts, nil
}
