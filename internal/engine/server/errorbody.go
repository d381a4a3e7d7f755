package server

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxErrorBody is how much is read of an answer that is an error, decompressed.
const maxErrorBody = 64 << 10

// ErrorBodyPatience is how long it may take in all to read an answer that is an error. It is
// shorter than the patience of an Inquiry, so that a stalled refusal still counts as a refusal
// there.
const ErrorBodyPatience = 5 * time.Second

func isError(response *http.Response) bool {
	return response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices
}

// readErrorBody replaces the body of an answer that is an error with what can be read of
// it in time. The status code says most that a caller needs, so a body that is cut, or
// breaks, is no failure.
func readErrorBody(response *http.Response) {
	body, closed := response.Body, make(chan struct{})
	late := time.AfterFunc(ErrorBodyPatience, func() {
		defer close(closed)
		body.Close()
	})
	text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if late.Stop() {
		body.Close()
	} else {
		<-closed
	}
	maskCredential(text, response.Request)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}

// minCredential is the length from which a credential is masked by its value. A shorter one is in
// too many words.
const minCredential = 6

// maskCredential masks the credential of a request in the text of its answer. A mask is as long as
// what it masks, because the text may be protobuf.
func maskCredential(text []byte, request *http.Request) {
	if request == nil {
		return // of a transport of the caller's
	}
	_, credential, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if credential = strings.TrimSpace(credential); len(credential) < minCredential {
		return
	}
	for at := 0; ; {
		next := bytes.Index(text[at:], []byte(credential))
		if next < 0 {
			return
		}
		at += next
		copy(text[at:], strings.Repeat("x", len(credential)))
	}
}
