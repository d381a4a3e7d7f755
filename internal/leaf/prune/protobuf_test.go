package prune_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/internal/leaf/prune"
	"github.com/rvinformer/informer/internal/leaf/wire"
)

// message is what the generated types have.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func marshalled(t require.TestingT, m message) []byte {
	b, err := m.Marshal()
	require.NoError(t, err)
	return b
}

// fullPod has every field of ObjectMeta.
func fullPod() *corev1.Pod {
	pod := bigPod(1)
	seconds, at := int64(30), pod.CreationTimestamp
	pod.SelfLink, pod.Generation, pod.Finalizers = "/link", 7, []string{"a", "b"}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &seconds
	return pod
}

var (
	podType  = reflect.TypeFor[*corev1.Pod]()
	metaType = reflect.TypeFor[*metav1.PartialObjectMetadata]()
)

// checkProtobuf holds AppendProtobuf against decoding and Apply, where the
// message can be decoded into m. It says whether it could.
func checkProtobuf(t *testing.T, encoded []byte, fields *prune.Fields, m message) bool {
	before := bytes.Clone(encoded)
	text, err := fields.Of(reflect.TypeOf(m)).AppendProtobuf([]byte("before"), encoded)
	require.Equal(t, before, encoded)
	if m.Unmarshal(encoded) != nil {
		return false
	}
	var malformed *wire.MalformedError
	if errors.As(err, &malformed) && strings.Contains(malformed.Detail, "entry of a map") {
		return false // the generated code lets keys run over the end of their entry
	}
	require.NoError(t, err)
	got := reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)
	require.NoError(t, got.Unmarshal(bytes.TrimPrefix(text, []byte("before"))))
	fields.Apply(m)
	require.Equal(t, marshalled(t, m), marshalled(t, got), "%s", text)
	return true
}

func TestAppendProtobuf(t *testing.T) {
	for path, change := range map[string]func(*corev1.Pod){
		managedFields:          func(p *corev1.Pod) { p.ManagedFields = nil },
		lastApplied:            func(p *corev1.Pod) { delete(p.Annotations, corev1.LastAppliedConfigAnnotation) },
		"metadata.annotations": func(p *corev1.Pod) { p.Annotations = nil },
		"metadata.labels":      func(p *corev1.Pod) { p.Labels = nil },
		"metadata.labels.tier": func(p *corev1.Pod) { delete(p.Labels, "tier") },
		`metadata.labels.app\.kubernetes\.io/name`: func(p *corev1.Pod) { delete(p.Labels, "app.kubernetes.io/name") },
		"metadata.ownerReferences":                 func(p *corev1.Pod) { p.OwnerReferences = nil },
		"metadata.finalizers":                      func(p *corev1.Pod) { p.Finalizers = nil },
		"metadata.deletionTimestamp":               func(p *corev1.Pod) { p.DeletionTimestamp = nil },
		"metadata.deletionGracePeriodSeconds":      func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = nil },
		// What leads nowhere.
		"metadata.labels.none":          func(*corev1.Pod) {},
		"metadata.labels.tier.x":        func(*corev1.Pod) {},
		"metadata.ownerReferences.name": func(*corev1.Pod) {},
		"metadata.name.first":           func(*corev1.Pod) {},
		"metadata.managedField":         func(*corev1.Pod) {},
		"metadata.Labels":               func(*corev1.Pod) {},
		"status.phase.x":                func(*corev1.Pod) {},
		"spec.containers.image":         func(*corev1.Pod) {},
		"labels":                        func(*corev1.Pod) {},
	} {
		pod := fullPod()
		encoded := marshalled(t, pod)
		change(pod)
		got, err := pruned(t, path).Of(podType).AppendProtobuf([]byte("before"), encoded)
		require.NoError(t, err)
		require.Equal(t, "before"+string(marshalled(t, pod)), string(got), path)
	}
}

func TestAppendProtobufKnowsEveryFieldOfMetadata(t *testing.T) {
	fields := reflect.TypeFor[metav1.ObjectMeta]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if slices.Contains(identity, "metadata."+name) {
			continue
		}
		without, only := pruned(t, "metadata."+name), kept(t, "metadata."+name)
		encoded := marshalled(t, fullPod())
		for _, fields := range []*prune.Fields{without, only} {
			of := fields.Of(metaType)
			require.NoError(t, of.Err())
			require.True(t, of.Knows() && of.InProtobuf(), name)
			got, err := of.AppendProtobuf(nil, encoded)
			require.NoError(t, err)
			require.Less(t, len(got), len(encoded), name)
			require.True(t, checkProtobuf(t, encoded, fields, &corev1.Pod{}))
			require.True(t, checkProtobuf(t, marshalled(t, &metav1.PartialObjectMetadata{ObjectMeta: fullPod().ObjectMeta}), fields, &metav1.PartialObjectMetadata{}))
		}
		got, err := only.Of(metaType).AppendProtobuf(nil, encoded)
		require.NoError(t, err)
		withAll, none := fullPod(), &corev1.Pod{}
		require.NoError(t, none.Unmarshal(got))
		field := func(p *corev1.Pod) interface{} { return reflect.ValueOf(p.ObjectMeta).Field(i).Interface() }
		require.NotEmpty(t, field(withAll), name)
		require.True(t, apiequality.Semantic.DeepEqual(field(withAll), field(none)), name)
	}
}

// field writes a length-delimited field below 16.
func field(num byte, parts ...string) string {
	data := strings.Join(parts, "")
	return string(binary.AppendUvarint([]byte{num<<3 | 2}, uint64(len(data)))) + data
}

func TestAppendProtobufKeepsTheRest(t *testing.T) {
	name, spec, unknown := field(1, "n"), field(2, "spec"), "\x7d1234"
	label := func(key, value string) string { return field(11, field(1, key), field(2, value)) }
	long := label("long", strings.Repeat("x", 200))
	for _, c := range []struct{ message, want string }{
		{"", ""},
		{spec + field(1), spec + field(1)},
		{spec + unknown + field(1, label("a", "1"), name, unknown, label("b", "2"), label("a", "3")) + unknown, spec + unknown + field(1, name, unknown, label("b", "2")) + unknown},
		// The length becomes shorter.
		{field(1, name, long) + spec, field(1, name) + spec},
		// Metadata in two pieces, which a decoder merges.
		{field(1, label("a", "1"), name) + spec + field(1, label("a", "2"), label("b", "3")), field(1, name) + spec + field(1, label("b", "3"))},
		// Lengths of more bytes than they need stay where nothing is dropped.
		{"\x0a\x83\x00" + name + spec, "\x0a\x83\x00" + name + spec},
		{"\x8a\x00\x8e\x80\x00" + name + label("a", "1") + "\x80\x01\x05" + spec, "\x0a\x06" + name + "\x80\x01\x05" + spec},
		// The last key counts, and an entry without one has the empty key.
		{field(1, field(11, field(1, "b"), field(2, "1"), field(1, "a"))), field(1)},
		{field(1, field(11, field(1, "a"), field(1, "b"))), field(1, field(11, field(1, "a"), field(1, "b")))},
		{field(1, field(11)), field(1, field(11))},
		{field(1, field(11, field(2, "1"), unknown, field(1, "a"))), field(1)},
		// A group, with another one in it that ends before more fields.
		{"\x1b\x23\x0a\x01a\x24\x0a\x01b\x1c" + field(1, label("a", "1")), "\x1b\x23\x0a\x01a\x24\x0a\x01b\x1c" + field(1)},
		// A group whose field has data that looks like its end.
		{"\x1b\x0a\x01\x1c\x1c" + field(1, label("a", "1")), "\x1b\x0a\x01\x1c\x1c" + field(1)},
		// Fields of metadata without a name: 15, 16, 18 and the last there can be.
		{field(1, "\x7a\x00\x82\x01\x00\x92\x01\x00\xfa\xff\xff\xff\x3f\x00"), field(1, "\x7a\x00\x82\x01\x00\x92\x01\x00\xfa\xff\xff\xff\x3f\x00")},
	} {
		got, err := pruned(t, "metadata.labels.a", "metadata.labels.long").Of(podType).AppendProtobuf(nil, []byte(c.message))
		require.NoError(t, err, "%q", c.message)
		require.Equal(t, c.want, string(got), "%q", c.message)
	}
}

func TestAppendProtobufRefuses(t *testing.T) {
	for message, want := range map[string]string{
		"\x0a":                              "byte 1: cut within a varint",
		"\x0a\x05a":                         "byte 2: a field runs over the end of its message",
		"\x12\x05a":                         "byte 2: a field runs over the end of its message",
		"\x11a":                             "byte 1: a field runs over the end of its message",
		"\x15a":                             "byte 1: a field runs over the end of its message",
		"\x08\x01":                          "byte 2: a field of the wrong wire type",
		"\x02\x00":                          "byte 1: an illegal tag",
		"\x0c":                              "byte 1: an illegal tag",
		"\x17":                              "byte 1: an illegal tag",
		"\x13\x0a\x01a":                     "byte 4: cut within a varint",
		"\x12" + strings.Repeat("\xff", 11): "byte 11: a varint of more than 10 bytes",
		"\x12" + strings.Repeat("\xff", 9) + "\x01": "byte 11: a field runs over the end of its message",
		"\x0a\x02\x0a\x05":                          "byte 4: a field runs over the end of its message",
		"\x0a\x02\x58\x05":                          "byte 4: a field of the wrong wire type",
		"\x0a\x04\x5a\x02\x0a\x05":                  "byte 6: in an entry of a map: a field runs over the end of its message",
		"\x0a\x04\x5a\x02\x08\x05":                  "byte 6: in an entry of a map: a field of the wrong wire type",
	} {
		for _, fields := range []*prune.Fields{pruned(t, "metadata.labels.a"), kept(t, "metadata.labels.a")} {
			got, err := fields.Of(podType).AppendProtobuf([]byte("before"), []byte(message))
			require.EqualError(t, err, "prune: malformed object at "+want, "%q", message)
			require.Equal(t, "before", string(got))
		}
	}
}

func TestAppendProtobufAllocatesNothing(t *testing.T) {
	encoded := marshalled(t, bigPod(1))
	dst := make([]byte, 0, len(encoded))
	var err error
	for _, fields := range []*prune.Fields{pruned(t, managedFields, lastApplied, "spec.volumes"), kept(t, fewFields...)} {
		of := fields.Of(podType)
		require.Zero(t, testing.AllocsPerRun(10, func() { dst, err = of.AppendProtobuf(dst[:0], encoded) }))
		require.NoError(t, err)
	}
}

var metaPaths = []string{managedFields, lastApplied, "metadata.labels", "metadata.labels.tier", "metadata.labels.k", "metadata.annotations", "metadata.annotations.note",
	"metadata.annotations.k", "metadata.ownerReferences", "metadata.finalizers", "metadata.generateName", "metadata.selfLink", "metadata.generation",
	"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.labels.tier.x", "metadata.uid.x"}

// somePaths are of the metadata, and of all of a pod.
func somePaths(r *rand.Rand) (paths []string) {
	for range r.IntN(5) {
		if r.IntN(3) > 0 {
			paths = append(paths, metaPaths[r.IntN(len(metaPaths))])
		} else {
			paths = append(paths, podPaths[r.IntN(len(podPaths))])
		}
	}
	return paths
}

// dropped are the paths that can be pruned.
func dropped(paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool { return path == "metadata" })
}

// strip takes fields away at random, so that lengths of all sizes come.
func strip(t testing.TB, r *rand.Rand, pod *corev1.Pod) {
	if prefix := r.IntN(3); prefix > 0 {
		pod.Annotations["note"] = strings.Repeat("x", 1<<r.IntN(17))
	}
	for range r.IntN(12) {
		for _, field := range []string{managedFields, "metadata.annotations", "metadata.labels.tier", "metadata.generation", "spec", "status"} {
			if r.IntN(4) == 0 {
				pruned(t, field).Apply(pod)
			}
		}
	}
}

func TestAppendProtobufOfRandomObjects(t *testing.T) {
	for seed := range seeds(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		pod := fullPod()
		strip(t, r, pod)
		fields := stay(t, somePaths(r), dropped(somePaths(r)))
		require.True(t, checkProtobuf(t, marshalled(t, pod), fields, &corev1.Pod{}))
		part := &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
		require.True(t, checkProtobuf(t, marshalled(t, part), fields, &metav1.PartialObjectMetadata{}))
	}
}

// Whatever is cut out of a message, or changed in it, is no panic.
func TestAppendProtobufOfBrokenObjects(t *testing.T) {
	encoded := marshalled(t, fullPod())
	for _, fields := range []*prune.Fields{pruned(t, metaPaths...), kept(t, podPaths...)} {
		of := fields.Of(podType)
		for at := range encoded {
			checkProtobuf(t, encoded[:at], fields, &corev1.Pod{})
			for _, c := range []byte{0, 1, 0x7f, 0x80, 0xff, encoded[at] ^ 8} {
				broken := bytes.Clone(encoded)
				broken[at] = c
				_, _ = of.AppendProtobuf(nil, broken)
			}
		}
	}
}

func FuzzAppendProtobuf(f *testing.F) {
	f.Add(marshalled(f, fullPod()), "", strings.Join(metaPaths, "\n"))
	f.Add(marshalled(f, fullPod()), strings.Join(podPaths, "\n"), "spec.containers")
	f.Add([]byte(field(1, field(11, field(1, "k"), field(2, "v")), field(11, field(1, "l")))+field(2, "x")+field(1, field(12, "\x0a\x01k"))), "metadata.labels.k", "metadata.labels.k\nmetadata.annotations.k")
	f.Add([]byte("\x1b\x0a\x01a\x1c\x8a\x00\x85\x00\x0a\x03abc\x08\x01"), "", "metadata.labels")
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 4))
		pod := fullPod()
		strip(f, r, pod)
		pod.Status = corev1.PodStatus{}
		f.Add(marshalled(f, pod), strings.Join(somePaths(r), "\n"), strings.Join(dropped(somePaths(r)), "\n"))
	}
	f.Fuzz(func(t *testing.T, encoded []byte, keep, drop string) {
		fields, err := prune.Parse(lines(keep), lines(drop))
		if err == nil && len(encoded) < 1<<14 {
			checkProtobuf(t, encoded, fields, &corev1.Pod{})
			checkProtobuf(t, encoded, fields, &metav1.PartialObjectMetadata{})
		}
	})
}
