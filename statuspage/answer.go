package statuspage

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// answer writes data as the request wants it: as a page of the template, or as JSON.
func answer(w http.ResponseWriter, r *http.Request, code int, template string, data any) {
	asJSON, err := wantsJSON(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var body strings.Builder
	contentType, show := "text/html; charset=utf-8", visibleHTML
	if asJSON {
		contentType, show = "application/json", visible
		e := json.NewEncoder(&body)
		e.SetIndent("", "  ")
		err = e.Encode(data)
	} else {
		err = templates.ExecuteTemplate(&body, template, data)
	}
	if err != nil {
		http.Error(w, "cannot show: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Content-Type", contentType)
	text := show(body.String())
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text) // the other side may be gone
}

// wantsJSON reports whether the answer is to be JSON: the parameter format says so, or the request
// accepts it rather than HTML.
func wantsJSON(r *http.Request) (bool, error) {
	switch format := r.URL.Query().Get("format"); format {
	case "json":
		return true, nil
	case "html":
		return false, nil
	case "":
		return quality(r, "application/json") > quality(r, "text/html"), nil
	default:
		return false, fmt.Errorf("format %q: there are html and json", format)
	}
}

// quality is how much a request wants a type, from 0 to 1, by its header Accept.
func quality(r *http.Request, want string) (best float64) {
	family, _, _ := strings.Cut(want, "/")
	named := false
	for _, header := range r.Header.Values("Accept") {
		for accepted := range strings.SplitSeq(header, ",") {
			name, parameters, err := mime.ParseMediaType(accepted)
			if err != nil || name != want && (named || name != family+"/*" && name != "*/*") {
				continue
			}
			q := 1.0
			if text, ok := parameters["q"]; ok {
				if q, err = strconv.ParseFloat(text, 64); err != nil {
					continue
				}
			}
			if name == want && !named {
				named, best = true, q // what is named counts, whatever the wildcards say
			} else {
				best = max(best, q)
			}
		}
	}
	return best
}
