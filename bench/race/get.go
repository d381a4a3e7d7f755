package race

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Get is a plain GET that accepts a media type, if one is named. The caller closes the body.
func Get(ctx context.Context, client *http.Client, url, accept string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if accept != "" { // an open request keeps its headers in memory
		request.Header.Set("Accept", accept)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return response.Body, nil
}

// Drain reads a body that brings next to nothing, with next to no memory.
func Drain(body io.ReadCloser) error {
	defer body.Close()
	var buf [64]byte
	for {
		if _, err := body.Read(buf[:]); err != nil {
			return err
		}
	}
}
