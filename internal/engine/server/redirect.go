package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// checkRedirect refuses to follow a server to another one. The transport adds the
// credentials of the configuration to each request, also to one that was redirected.
func checkRedirect(request *http.Request, via []*http.Request) error {
	const maxRedirects = 10 // as http.Client has it
	from, to := via[0].URL, request.URL
	switch {
	case !sameServer(from, to):
		return fmt.Errorf("redirect from %s://%s to %s://%s refused: another server must not see the credentials", from.Scheme, from.Host, to.Scheme, to.Host)
	case len(via) >= maxRedirects:
		return errors.New("stopped after 10 redirects")
	default:
		return nil
	}
}

// sameServer reports whether to is at the server of from, over a connection that is no
// less safe.
func sameServer(from, to *url.URL) bool {
	if from.Scheme == "http" && to.Scheme == "https" {
		return from.Hostname() == to.Hostname()
	}
	return from.Scheme == to.Scheme && from.Hostname() == to.Hostname() && port(from) == port(to)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}
