// Command floor is the least that any client takes: GETs with client-go's HTTP client,
// whose bodies are thrown away.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/bench/race"
)

const (
	acceptJSON     = "application/json"
	acceptProtobuf = "application/vnd.kubernetes.protobuf"
	asMetadata     = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

func main() {
	race.Main(
		plain("floor-json-plain", acceptJSON), plain("floor-protobuf-plain", acceptProtobuf), plain("floor-metadata-protobuf-plain", acceptProtobuf+asMetadata),
		floor("floor-json", acceptJSON, false, race.ColdStart, race.Relist, race.WatchBurst, race.Idle),
		floor("floor-protobuf", acceptProtobuf, false, race.ColdStart, race.Relist, race.WatchBurst),
		floor("floor-metadata-protobuf", acceptProtobuf+asMetadata, false, race.ColdStart, race.Relist, race.WatchBurst, race.Audit),
		floor("floor-json-watchlist", acceptJSON, true, race.ColdStart, race.Relist, race.Restart),
		floor("floor-protobuf-watchlist", acceptProtobuf, true, race.ColdStart, race.Relist, race.Restart),
		floor("floor-metadata-protobuf-watchlist", acceptProtobuf+asMetadata, true, race.ColdStart, race.Relist),
	)
}

func floor(name, accept string, watchList bool, scenarios ...race.Scenario) race.Contestant {
	return race.Contestant{Entry: race.Entry{Name: name, Floor: name, Scenarios: scenarios}, Connect: func(t *race.Target) (race.Source, error) {
		client, err := rest.HTTPClientFor(t.Config())
		return floorSource{t, client, accept, watchList}, err
	}}
}

// plain is a floor whose pages are not compressed, for the ways to read a set.
func plain(name, accept string) race.Contestant {
	c := floor(name, accept, false, race.Ways)
	c.Connect = func(t *race.Target) (race.Source, error) {
		config := t.Config()
		config.DisableCompression = true
		client, err := rest.HTTPClientFor(config)
		return floorSource{t, client, accept, false}, err
	}
	return c
}

type floorSource struct {
	target    *race.Target
	client    *http.Client
	accept    string
	watchList bool
}

func (s floorSource) Follow(ctx context.Context, f race.Follow) *race.Following {
	synced, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		version, err := s.list(ctx, f.Namespace)
		if err == nil {
			close(synced)
			if s.watchList {
				return
			}
			err = s.watch(ctx, f, version)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "floor:", err)
			os.Exit(1)
		}
	}()
	return &race.Following{Synced: synced, Wait: func() { <-ended }}
}

// list reads the whole set, and returns its resource version.
func (s floorSource) list(ctx context.Context, namespace string) (string, error) {
	if s.watchList {
		body, err := s.get(ctx, namespace, url.Values{
			"watch": {"true"}, "sendInitialEvents": {"true"}, "allowWatchBookmarks": {"true"},
			"resourceVersionMatch": {"NotOlderThan"}, extra.EndParameter: {extra.EndInitial},
		})
		if err != nil {
			return "", err
		}
		if s.target.Simulated {
			return "", discard(body) // the watch is not followed
		}
		return "", discardUntil(body, metav1.InitialEventsAnnotationKey)
	}
	query := url.Values{"limit": {strconv.Itoa(race.PageSize)}}
	for {
		body, err := s.get(ctx, namespace, query)
		if err != nil {
			return "", err
		}
		start := make([]byte, 1024)
		n, err := io.ReadFull(body, start)
		if err != nil && err != io.ErrUnexpectedEOF {
			body.Close()
			return "", err
		}
		if err := discard(body); err != nil {
			return "", err
		}
		version, token := listMeta(start[:n])
		if version == "" {
			return "", fmt.Errorf("a list that begins with %q", start[:n])
		}
		if token == "" {
			return version, nil
		}
		query.Set("continue", token)
	}
}

// watch reads changes since a version until ctx ends, or the burst does.
func (s floorSource) watch(ctx context.Context, f race.Follow, version string) error {
	query := url.Values{"watch": {"true"}, "resourceVersion": {version}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"1800"}}
	if s.target.Events > 0 {
		query.Set(extra.EndParameter, extra.EndBurst)
	}
	body, err := s.get(ctx, f.Namespace, query)
	if err != nil {
		return err
	}
	if s.target.Events == 0 {
		return drain(body)
	}
	if _, err := io.ReadFull(body, make([]byte, 1)); err != nil {
		body.Close()
		return err
	}
	f.Updated("")
	if err := discard(body); err != nil {
		return err
	}
	f.Updated(s.target.LastVersion)
	return nil
}

func (s floorSource) get(ctx context.Context, namespace string, query url.Values) (io.ReadCloser, error) {
	path := "/api/v1/pods"
	if namespace != "" {
		path = "/api/v1/namespaces/" + namespace + "/pods"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.target.Host+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	accept := s.accept
	if query.Get("watch") == "" {
		accept = strings.Replace(accept, "PartialObjectMetadata", "PartialObjectMetadataList", 1)
	}
	request.Header.Set("Accept", accept)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	return response.Body, nil
}

func discard(body io.ReadCloser) error {
	defer body.Close()
	_, err := io.Copy(io.Discard, body)
	return err
}

// discardUntil reads until a text has come, for a server that does not know when
// to end.
func discardUntil(body io.ReadCloser, text string) error {
	defer body.Close()
	buf := make([]byte, 32<<10)
	kept := 0
	for {
		n, err := body.Read(buf[kept:])
		if n += kept; bytes.Contains(buf[:n], []byte(text)) {
			return nil
		}
		if err != nil {
			return err
		}
		kept = copy(buf, buf[max(0, n-len(text)):n])
	}
}

// drain is discard with next to no memory, for bodies that bring next to nothing.
func drain(body io.ReadCloser) error {
	defer body.Close()
	var buf [64]byte
	for {
		if _, err := body.Read(buf[:]); err != nil {
			return err
		}
	}
}

var (
	jsonVersion  = regexp.MustCompile(`"resourceVersion":"([^"]*)"`)
	jsonContinue = regexp.MustCompile(`"continue":"([^"]*)"`)
)

// listMeta finds the resource version and the continue token in the first bytes
// of a list of a built-in type, which has them there.
func listMeta(start []byte) (version, token string) {
	if envelope, ok := bytes.CutPrefix(start, []byte("k8s\x00")); ok {
		meta := protoField(protoField(envelope, 2), 1)
		return string(protoField(meta, 2)), string(protoField(meta, 3))
	}
	if end := bytes.Index(start, []byte(`"items"`)); end >= 0 {
		start = start[:end]
	}
	first := func(re *regexp.Regexp) string {
		if m := re.FindSubmatch(start); m != nil {
			return string(m[1])
		}
		return ""
	}
	return first(jsonVersion), first(jsonContinue)
}

// protoField returns a field of a message, as much of it as is there.
func protoField(message []byte, number protowire.Number) []byte {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil
		}
		message = message[size:]
		if kind == protowire.BytesType {
			length, size := protowire.ConsumeVarint(message)
			if size < 0 {
				return nil
			}
			message = message[size:]
			value := message[:min(length, uint64(len(message)))]
			if n == number {
				return value
			}
			message = message[len(value):]
			continue
		}
		size = protowire.ConsumeFieldValue(n, kind, message)
		if size < 0 {
			return nil
		}
		message = message[size:]
	}
	return nil
}
