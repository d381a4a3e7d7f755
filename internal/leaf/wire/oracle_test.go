package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/util/framer"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/api"
)

// got is one call of Next, nothing lent.
type got struct {
	Type                                           string
	Bytes, Namespace, Name, UID, RV, Version, Kind string
	Index                                          int
	Offset                                         int64
	End                                            bool
	Err                                            string
	err                                            error
}

func record(item Item, err error) got {
	g := got{Bytes: string(item.Bytes), Namespace: string(item.Namespace), Name: string(item.Name), UID: string(item.UID),
		RV: string(item.ResourceVersion), Version: string(item.APIVersion), Kind: string(item.Kind), Index: item.Index, Offset: item.Offset, err: err}
	if err != nil {
		g.Err = err.Error()
	}
	return g
}

// readAll calls Next until it ends, always with poisoned loans.
func readAll(t testing.TB, r any) (all []got, end error) {
	for range 1 << 20 {
		var g got
		switch r := r.(type) {
		case ListReader:
			g = record(r.Next())
		case WatchReader:
			event, err := r.Next()
			g = record(event.Item, err)
			g.Type, g.End = string(event.Type), event.InitialEventsEnd
		}
		if g.err != nil && !recoverable(g.err) {
			var body *api.BodyError
			require.True(t, g.err == io.EOF || errors.As(g.err, &body), "%v", g.err)
			return all, g.err
		}
		all = append(all, g)
	}
	t.Fatal("Next never ends")
	return nil, nil
}

// recoverable reports whether Next may be called again after err.
func recoverable(err error) bool {
	var item *ItemError
	return errors.As(err, &item)
}

func poisoned(r any) any {
	switch r := r.(type) {
	case *jsonList:
		r.poison = true
	case *protoList:
		r.poison = true
	case *jsonWatch:
		r.poison = true
	case *protoWatch:
		r.poison = true
	}
	return r
}

type open func(body io.Reader, o Options) any

func openList(f Format) open {
	return func(body io.Reader, o Options) any { return poisoned(NewListReader(body, f, o)) }
}

func openWatch(f Format) open {
	return func(body io.Reader, o Options) any { return poisoned(NewWatchReader(body, f, o)) }
}

// chunks returns the body in pieces of random sizes.
type chunks struct {
	body []byte
	rand *rand.Rand
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.body) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.body[:min(len(c.body), c.rand.IntN(400))])
	c.body = c.body[n:]
	return n, nil
}

// readEveryWay reads the body whole; then in chunks, with small buffers, with a small cap and cut
// at every byte, and checks that those agree.
func readEveryWay(t testing.TB, body []byte, open open) ([]got, error) {
	all, end := readAll(t, open(bytes.NewReader(body), Options{}))
	seed := fnv.New64a()
	seed.Write(body)
	for name, source := range map[string]io.Reader{
		"one byte": iotest.OneByteReader(bytes.NewReader(body)),
		"chunks":   &chunks{body, rand.New(rand.NewPCG(seed.Sum64(), 0))},
		"data err": iotest.DataErrReader(bytes.NewReader(body)),
	} {
		again, endAgain := readAll(t, open(source, Options{BufferBytes: minBufferBytes}))
		require.Equal(t, errText(end), errText(endAgain), name)
		require.Equal(t, texts(all), texts(again), name)
	}

	// A cap loses items, but makes up none.
	small, _ := readAll(t, open(bytes.NewReader(body), Options{MaxItemBytes: 100, BufferBytes: minBufferBytes}))
	rest := all
	for _, g := range small {
		if g.err != nil {
			continue
		}
		for len(rest) > 0 && rest[0].Offset != g.Offset {
			rest = rest[1:]
		}
		require.NotEmpty(t, rest)
		require.Equal(t, rest[0].Bytes, g.Bytes)
	}

	if len(body) <= 2000 {
		whole := len(body)
		var fault *api.BodyError
		for n := range body {
			part, endPart := readAll(t, open(bytes.NewReader(body[:n]), Options{}))
			require.LessOrEqual(t, len(part), len(all))
			for i := range part {
				require.Equal(t, all[i].String(), part[i].String(), "cut at %d", n)
			}
			if errors.As(endPart, &fault) && strings.HasSuffix(fault.Err.Error(), "no kind or no apiVersion") {
				continue // the protobuf envelope's type may stand behind the list
			}
			if end == io.EOF && n < whole && endPart != io.EOF {
				require.ErrorIs(t, endPart, io.ErrUnexpectedEOF, "cut at %d", n)
			}
		}
	}
	return all, end
}

// errText leaves out the head, which depends on how much was read.
func errText(err error) string {
	var body *api.BodyError
	if errors.As(err, &body) {
		short := *body
		short.Head = nil
		return short.Error()
	}
	return fmt.Sprint(err)
}

func (g got) String() string {
	g.err = nil
	type plain got
	return fmt.Sprintf("%+v", plain(g))
}

func texts(all []got) []string {
	var s []string
	for _, g := range all {
		s = append(s, g.String())
	}
	return s
}

// objectMeta is the identity as the ordinary decoder sees it.
type objectMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// decodeMeta decodes the identity of an object. Of a repeated metadata the last one counts, with all
// that it lacks, as in an unstructured object. The decoder would add its fields to those before.
func decodeMeta(raw []byte) (o objectMeta, err error) {
	var last struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err = errors.Join(utiljson.Unmarshal(raw, &o), utiljson.Unmarshal(raw, &last)); err != nil || last.Metadata == nil {
		return o, err
	}
	var alone objectMeta
	err = utiljson.Unmarshal(last.Metadata, &alone.Metadata)
	o.Metadata = alone.Metadata
	return o, err
}

func checkJSONItem(t testing.TB, raw []byte, g got, nameless bool) {
	want, err := decodeMeta(raw)
	if err != nil || want.Metadata.Name == "" && !nameless {
		require.Error(t, g.err, "%s", raw)
		return
	}
	require.NoError(t, g.err, "%s", raw)
	require.Equal(t, string(raw), g.Bytes)
	m := want.Metadata
	require.Equal(t, []string{want.APIVersion, want.Kind, m.Name, m.Namespace, m.UID, m.ResourceVersion},
		[]string{g.Version, g.Kind, g.Name, g.Namespace, g.UID, g.RV}, "%s", raw)
}

func checkJSONList(t testing.TB, body []byte) {
	all, end := readEveryWay(t, body, openList(JSON))
	var want struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   metav1.ListMeta   `json:"metadata"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := utiljson.Unmarshal(body, &want); err != nil {
		// The structural scan lets pass what is wrong within a string, so this may still be io.EOF.
		return
	}
	var fault *api.BodyError
	if errors.As(end, &fault) && (errors.Is(end, api.ErrNotList) || errors.Is(end, ErrStatus) || strings.HasSuffix(fault.Err.Error(), "items for a second time")) {
		return // documented: these we refuse on purpose
	}
	require.Equal(t, io.EOF, end, "%s", body)
	require.Len(t, all, len(want.Items), "%s", body)
	for i, raw := range want.Items {
		checkJSONItem(t, raw, all[i], false)
	}
	l := NewListReader(bytes.NewReader(body), JSON, Options{})
	readAll(t, l)
	require.Equal(t, ListMeta{want.APIVersion, want.Kind, want.Metadata.ResourceVersion, want.Metadata.Continue, want.Metadata.RemainingItemCount, selectorOf(want.Metadata.ShardInfo)}, l.Meta())
}

func selectorOf(info *metav1.ShardInfo) string {
	if info == nil {
		return ""
	}
	return info.Selector
}

func checkProtoList(t testing.TB, body []byte) {
	all, end := readEveryWay(t, body, openList(Protobuf))
	want, gvk, err := protoCodec.Decode(body, nil, nil)
	if err != nil {
		return
	}
	var fault *api.BodyError
	if errors.As(end, &fault) && (errors.Is(end, api.ErrNotList) || errors.Is(end, ErrStatus) || strings.HasSuffix(fault.Err.Error(), "two lists in one envelope")) {
		return
	}
	if rawFields(body) > 1 {
		return // the ordinary decoder does not look at those before the last one
	}
	if errors.Is(end, io.ErrUnexpectedEOF) {
		var unknown runtime.Unknown
		require.NoError(t, unknown.Unmarshal(body[4:]))
		require.Empty(t, unknown.Raw) // documented: an envelope without a list counts as cut
		return
	}
	require.Equal(t, io.EOF, end)
	objects, err := meta.ExtractList(want)
	require.NoError(t, err)
	require.Len(t, all, len(objects))
	list, err := meta.ListAccessor(want)
	require.NoError(t, err)
	l := NewListReader(bytes.NewReader(body), Protobuf, Options{})
	readAll(t, l)
	require.Equal(t, ListMeta{gvk.GroupVersion().String(), gvk.Kind, list.GetResourceVersion(), list.GetContinue(), list.GetRemainingItemCount(), selectorOf(list.(metav1.ShardedListInterface).GetShardInfo())}, l.Meta())
	for i, object := range objects {
		checkProtoObject(t, object, all[i], l.Meta())
	}
}

// rawFields is how many messages an envelope has.
func rawFields(body []byte) (n int) {
	for envelope := (&Message{b: body[len(protoPrefix):]}); envelope.Next(); {
		if envelope.num == unknownRaw {
			n++
		}
	}
	return n
}

func checkProtoObject(t testing.TB, object runtime.Object, g got, list ListMeta) {
	m, err := meta.Accessor(object)
	if err != nil || m.GetName() == "" {
		require.Error(t, g.err)
		return
	}
	require.NoError(t, g.err)
	require.Equal(t, []string{m.GetName(), m.GetNamespace(), string(m.GetUID()), m.GetResourceVersion()}, []string{g.Name, g.Namespace, g.UID, g.RV})
	item := Item{Format: Protobuf, Bytes: []byte(g.Bytes)}
	own := item.AppendObject(nil, list.APIVersion, list.ItemKind())
	from, to := MessageIn(own, len(item.Bytes))
	require.Equal(t, g.Bytes, string(own[from:to]))
	again, _, err := protoCodec.Decode(own, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return
	}
	require.NoError(t, err)
	again.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	require.Equal(t, object, again)
}

func checkJSONWatch(t testing.TB, body []byte) {
	all, end := readEveryWay(t, body, openWatch(JSON))
	frames := json.NewDecoder(bytes.NewReader(body))
	for i := 0; ; i++ {
		var frame json.RawMessage
		if err := frames.Decode(&frame); err != nil {
			if err == io.EOF {
				require.Equal(t, io.EOF, end)
				require.Len(t, all, i)
			}
			return
		}
		if frame[0] != '{' || errors.Is(end, ErrStatus) {
			require.Error(t, end)
			return
		}
		require.Greater(t, len(all), i)
		var event metav1.WatchEvent
		if err := utiljson.Unmarshal(frame, &event); err != nil || eventType([]byte(event.Type)) == "" || len(event.Object.Raw) == 0 {
			require.Error(t, all[i].err, "%s", frame)
			continue
		}
		nameless := event.Type == "ERROR" || event.Type == "BOOKMARK"
		var annotated struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if event.Type == "BOOKMARK" && json.Unmarshal(event.Object.Raw, &annotated) != nil {
			continue
		}
		checkJSONItem(t, event.Object.Raw, all[i], nameless)
		if all[i].err == nil {
			require.Equal(t, event.Type, all[i].Type)
		}
	}
}

func checkProtoWatch(t testing.TB, body []byte) {
	all, end := readEveryWay(t, body, openWatch(Protobuf))
	frames := streaming.NewDecoder(framer.NewLengthDelimitedFrameReader(io.NopCloser(bytes.NewReader(body))), protoRawCodec)
	for i := 0; ; i++ {
		var event metav1.WatchEvent
		_, _, err := frames.Decode(nil, &event)
		switch {
		case err == io.EOF:
			// client-go also takes a cut right behind the length for the end.
			if end == io.EOF {
				require.Len(t, all, i)
			} else {
				require.GreaterOrEqual(t, len(body), frameHeader)
				require.Positive(t, binary.BigEndian.Uint32(body[len(body)-frameHeader:]))
			}
			return
		case err != nil:
			return
		}
		require.Greater(t, len(all), i)
		object, gvk, err := protoCodec.Decode(event.Object.Raw, nil, nil)
		if err != nil {
			continue
		}
		if eventType([]byte(event.Type)) == "" {
			require.Error(t, all[i].err)
			continue
		}
		if event.Type == "ERROR" {
			continue
		}
		if _, err := meta.Accessor(object); err != nil {
			continue
		}
		if event.Type != "BOOKMARK" || all[i].Name != "" {
			checkProtoObject(t, object, all[i], ListMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind + "List"})
		}
		if all[i].err == nil {
			require.Equal(t, event.Type, all[i].Type)
			if event.Type == "BOOKMARK" {
				m, _ := meta.Accessor(object)
				require.Equal(t, m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", all[i].End)
			}
		}
	}
}
