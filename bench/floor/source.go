// Package floor reads sets of pods with client-go's HTTP client, and throws away what comes: the
// least that any client takes.
package floor

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

	"github.com/rvinformer/informer/bench/podserver/extra"
	"github.com/rvinformer/informer/bench/race"
)

// Media types that a Source may accept.
const (
	JSON       = "application/json"
	Protobuf   = "application/vnd.kubernetes.protobuf"
	AsMetadata = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// Source reads sets of pods, and changes of them.
type Source struct {
	Target *race.Target
	Client *http.Client
	// Accept is a media type.
	Accept string
	// WatchList reads a set with a watch-list. Else it is read in pages.
	WatchList bool
	// Copies, if set, are made of one object, as many as come.
	Copies *Copies
}

// Follow implements race.Source.
func (s Source) Follow(ctx context.Context, f race.Follow) *race.Following {
	synced, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		version, err := s.list(ctx, f)
		if err == nil {
			close(synced)
			if s.WatchList {
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
func (s Source) list(ctx context.Context, f race.Follow) (string, error) {
	if s.WatchList {
		body, err := s.get(ctx, f.Namespace, url.Values{
			"watch": {"true"}, "sendInitialEvents": {"true"}, "allowWatchBookmarks": {"true"},
			"resourceVersionMatch": {"NotOlderThan"}, extra.EndParameter: {extra.EndInitial},
		})
		if err != nil {
			return "", err
		}
		read := discardInitial
		if s.Target.Control != "" {
			read = discard // the watch is not followed
		}
		return "", s.throwAway(body, s.Target.Objects, f.Added, read)
	}
	query := url.Values{"limit": {strconv.Itoa(race.PageSize)}}
	for {
		body, err := s.get(ctx, f.Namespace, query)
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
func (s Source) watch(ctx context.Context, f race.Follow, version string) error {
	query := url.Values{"watch": {"true"}, "resourceVersion": {version}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"1800"}}
	if s.Target.Events > 0 {
		query.Set(extra.EndParameter, extra.EndBurst)
	}
	body, err := s.get(ctx, f.Namespace, query)
	if err != nil {
		return err
	}
	if s.Target.Events == 0 {
		return race.Drain(body)
	}
	if _, err := io.ReadFull(body, make([]byte, 1)); err != nil {
		body.Close()
		return err
	}
	f.Updated("")
	if err := s.throwAway(body, s.Target.Events-2, f.Updated, discard); err != nil {
		return err
	}
	f.Updated(s.Target.LastVersion)
	return nil
}

func (s Source) get(ctx context.Context, namespace string, query url.Values) (io.ReadCloser, error) {
	path := "/api/v1/pods"
	if namespace != "" {
		path = "/api/v1/namespaces/" + namespace + "/pods"
	}
	accept := s.Accept
	if query.Get("watch") == "" {
		accept = strings.Replace(accept, "PartialObjectMetadata", "PartialObjectMetadataList", 1)
	}
	return race.Get(ctx, s.Client, s.Target.Host+path+"?"+query.Encode(), accept)
}

// throwAway calls read with a body that has so many objects. With Copies, it makes as many copies,
// and calls made after each.
func (s Source) throwAway(body io.ReadCloser, objects int, made func(resourceVersion string), read func(io.ReadCloser) error) error {
	if s.Copies == nil {
		return read(body)
	}
	p := &pace{Copies: s.Copies, left: objects, made: made}
	if err := read(teed{io.TeeReader(body, p), body}); err != nil {
		return err
	}
	p.copy(p.left)
	return nil
}

// teed is a body. Its Reader also writes what it reads to another place.
type teed struct {
	io.Reader
	io.Closer
}

func discard(body io.ReadCloser) error {
	defer body.Close()
	_, err := io.Copy(io.Discard, body)
	return err
}

// discardInitial reads until the bookmark behind the initial events has come, for a server that
// does not know when to end.
func discardInitial(body io.ReadCloser) error {
	defer body.Close()
	const text = metav1.InitialEventsAnnotationKey
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
