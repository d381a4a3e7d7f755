package checkpoints_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/tests/harness"
)

const someUID = "6f1c2a9e-0b5d-4c3e-8f77-0123456789ab"

// variedStorage has versions, UIDs and keys of every kind.
func variedStorage(t testing.TB) *informer.ResourceVersionStorage {
	t.Helper()
	s := informer.NewResourceVersionStorage()
	for _, obj := range []*metav1.PartialObjectMetadata{
		harness.PartialObject("default", "web-7d9f-2xk4z", "1691", someUID),
		harness.PartialObject("default", "web-7d9f-x2x4z", "18446744073709551615", ""),
		harness.PartialObject("default", "opaque", "340282366920938463463374607431768211455", "not-a-uuid"),
		harness.PartialObject("", "node-1", "007", strings.ToUpper(someUID)),
		harness.PartialObject("", "node-2", "", someUID),
		harness.PartialObject("", "", "0", ""),
		harness.PartialObject("a", "", "1", ""),
		harness.PartialObject("a/b", "c", "\x00\xff", ""),
		harness.PartialObject("é", strings.Repeat("long-", 100), strings.Repeat("9", 300), strings.Repeat("u", 300)),
	} {
		require.NoError(t, s.Add(obj))
	}
	return s
}

func checkpointOf(t testing.TB, s *informer.ResourceVersionStorage) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := s.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	return b.Bytes()
}

// held is all that a storage has, UIDs included.
func held(t testing.TB, s *informer.ResourceVersionStorage) map[string]keytable.Version {
	t.Helper()
	entries := map[string]keytable.Version{}
	r := checkpoint.NewReader(bytes.NewReader(checkpointOf(t, s)))
	for {
		key, version, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if _, twice := entries[key]; twice {
			require.Fail(t, "written twice", key)
		}
		v := version.Version()
		entries[strings.Clone(key)] = keytable.Version{
			ResourceVersion: strings.Clone(v.ResourceVersion), UID: types.UID(strings.Clone(string(v.UID))),
		}
	}
	require.Empty(t, r.Metadata())
	require.Equal(t, s.Len(), len(entries))
	for key, rv := range s.All() {
		require.Equal(t, rv, entries[key].ResourceVersion)
	}
	return entries
}

// requireRefused tells that b is a *CheckpointError of one of the kinds, and leaves
// the storage as it was.
func requireRefused(t testing.TB, b []byte, kinds ...error) *informer.CheckpointError {
	t.Helper()
	s := informer.NewResourceVersionStorage()
	require.NoError(t, s.Add(harness.PartialObject("as", "it-was", "1", someUID)))
	before := held(t, s)
	n, err := s.ReadFrom(bytes.NewReader(b))
	e := harness.ErrorAs[*informer.CheckpointError](t, err)
	require.True(t, slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }), err)
	require.LessOrEqual(t, n, int64(len(b)))
	require.LessOrEqual(t, e.Offset, n)
	require.Equal(t, before, held(t, s))
	return e
}

func TestCheckpointRoundTrip(t *testing.T) {
	requireSame := func(s *informer.ResourceVersionStorage) {
		t.Helper()
		written := checkpointOf(t, s)
		read := variedStorage(t)
		n, err := read.ReadFrom(iotest.HalfReader(bytes.NewReader(written)))
		require.NoError(t, err)
		require.EqualValues(t, len(written), n)
		require.Equal(t, held(t, s), held(t, read))
	}
	requireSame(informer.NewResourceVersionStorage())
	requireSame(variedStorage(t))

	random := rand.New(rand.NewPCG(1, 2))
	text := func(most int) string {
		b := make([]byte, random.IntN(most+1))
		for i := range b {
			b[i] = "abc-/0129\xff"[random.IntN(10)]
		}
		return string(b)
	}
	for range 20 {
		s := informer.NewResourceVersionStorage()
		for range random.IntN(3000) {
			obj := harness.PartialObject(text(3), text(8), strconv.FormatUint(random.Uint64()>>random.IntN(64), 10), string(podUID(random.Int())))
			if random.IntN(4) == 0 {
				obj.ResourceVersion, obj.UID = text(30), types.UID(text(40))
			}
			require.NoError(t, s.Add(obj))
		}
		requireSame(s)
	}
}

// TestCheckpointCut cuts one at every byte.
func TestCheckpointCut(t *testing.T) {
	written := checkpointOf(t, variedStorage(t))
	for cut := range written {
		e := requireRefused(t, written[:cut], io.ErrUnexpectedEOF)
		require.EqualValues(t, cut, e.Offset)
	}
}

// TestCheckpointFlipped has every byte of one wrong, once in every bit and once in
// all of them.
func TestCheckpointFlipped(t *testing.T) {
	small := variedStorage(t)
	for key := range small.All() {
		if len(key) > 100 {
			require.NoError(t, small.Delete(cache.DeletedFinalStateUnknown{Key: key}))
		}
	}
	written := checkpointOf(t, small)
	for at := range written {
		for _, flip := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
			b := slices.Clone(written)
			b[at] ^= flip
			switch {
			case at < 8:
				requireRefused(t, b, informer.ErrCheckpointFormat)
			case at < 10:
				requireRefused(t, b, informer.ErrCheckpointVersion, informer.ErrCheckpointDamaged)
			default: // a length may be longer than what there is
				requireRefused(t, b, informer.ErrCheckpointDamaged, io.ErrUnexpectedEOF)
			}
		}
	}
}

func TestCheckpointForeign(t *testing.T) {
	written := checkpointOf(t, variedStorage(t))
	for name, b := range map[string][]byte{
		"text":         []byte("apiVersion: v1\nkind: PodList\n"),
		"short":        []byte("{}"),
		"byte":         {0},
		"zeros":        make([]byte, 100),
		"gzip":         {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0},
		"png":          []byte("\x89PNG\r\n\x1a\n"),
		"line endings": bytes.ReplaceAll(written, []byte("\r\n"), []byte("\n")),
		"UTF-8":        []byte(strings.ToValidUTF8(string(written), "\ufffd")),
	} {
		t.Run(name, func(t *testing.T) {
			e := requireRefused(t, b, informer.ErrCheckpointFormat)
			require.Zero(t, e.Offset)
		})
	}
	newer := slices.Clone(written)
	newer[9] = 3
	e := requireRefused(t, newer, informer.ErrCheckpointVersion)
	require.ErrorContains(t, e, "version 3")
	require.EqualValues(t, 8, e.Offset)
	requireRefused(t, newer[:10], informer.ErrCheckpointVersion)
	requireRefused(t, nil, io.ErrUnexpectedEOF)
}

// TestCheckpointGolden reads what the first version of the format was. The file
// must never be written anew: users have such files.
func TestCheckpointGolden(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "v1.golden"))
	require.NoError(t, err)
	s := informer.NewResourceVersionStorage()
	n, err := s.ReadFrom(bytes.NewReader(b))
	require.NoError(t, err)
	require.EqualValues(t, len(b), n)
	want := map[string]keytable.Version{}
	for i := range 300 {
		key := fmt.Sprintf("team-%d/service-%d-%05d", i%7, i/7, i*i)
		want[key] = keytable.Version{ResourceVersion: strconv.Itoa(1000 + i*i*i), UID: podUID(i)}
	}
	maps.Copy(want, held(t, variedStorage(t)))
	require.Equal(t, want, held(t, s))
}

// TestCheckpointInAStream tells that not a byte more is read than was written.
func TestCheckpointInAStream(t *testing.T) {
	var b bytes.Buffer
	for range 3 {
		_, err := variedStorage(t).WriteTo(&b)
		require.NoError(t, err)
		b.WriteString("between")
	}
	for range 3 {
		s := informer.NewResourceVersionStorage()
		_, err := s.ReadFrom(&b)
		require.NoError(t, err)
		require.Equal(t, held(t, variedStorage(t)), held(t, s))
		require.Equal(t, "between", string(b.Next(len("between"))))
	}
	require.Zero(t, b.Len())
}

// TestCheckpointReadWhileRunning has lists go on while a checkpoint is read: the
// table that is read must not be of an earlier generation than they are.
func TestCheckpointReadWhileRunning(t *testing.T) {
	harness.Bubble(t, informertest.Options{}, func(t *testing.T, w *harness.World) {
		w.CreatePods("a/1", "a/2")
		var r harness.Recorder
		storage := informer.NewResourceVersionStorage()
		harness.Settled(w, informer.InformerConfig{Handler: &r, Storage: storage})
		written := checkpointOf(t, storage)
		_, err := storage.ReadFrom(io.MultiReader(bytes.NewReader(written[:20]), readerFunc(func([]byte) (int, error) {
			w.Relist()
			w.Relist()
			return 0, io.EOF
		}), bytes.NewReader(written[20:])))
		require.NoError(t, err)
		w.UpdatePod("a/1", "x")
		synctest.Wait()
		w.Down(func() { w.DeletePods("a/1") })
		w.RequireState(&r)
	})
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestCheckpointWhileTheStorageChanges holds what WriteTo promises.
func TestCheckpointWhileTheStorageChanges(t *testing.T) {
	const n = 4000
	s := informer.NewResourceVersionStorage()
	for i := range n {
		require.NoError(t, s.Add(harness.PartialObject("stays", strconv.Itoa(i), strconv.Itoa(i), string(podUID(i)))))
		require.NoError(t, s.Add(harness.PartialObject("grows", strconv.Itoa(i), "1", "")))
	}
	var round atomic.Int64 // all of "grows" have it, or the next
	round.Store(1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			next := round.Load() + 1
			for i := range n {
				select {
				case <-stop:
					return
				default:
				}
				name := strconv.Itoa(i)
				err := s.Update(harness.PartialObject("grows", name, strconv.FormatInt(next, 10), ""))
				if next%2 == 0 {
					err = errors.Join(err, s.Add(harness.PartialObject("comes", name, "1", "")))
				} else {
					err = errors.Join(err, s.Delete(harness.PartialObject("comes", name, "", "")))
				}
				if err != nil {
					t.Error(err)
				}
			}
			round.Store(next)
		}
	})
	for range 10 {
		oldest := round.Load()
		written := checkpointOf(t, s)
		newest := round.Load() + 1
		read := informer.NewResourceVersionStorage()
		_, err := read.ReadFrom(bytes.NewReader(written))
		require.NoError(t, err)
		counts := map[string]int{}
		for key, rv := range read.All() {
			namespace, name, _ := strings.Cut(key, "/")
			counts[namespace]++
			switch namespace {
			case "stays":
				require.Equal(t, name, rv)
			case "grows":
				number, err := strconv.ParseInt(rv, 10, 64)
				require.NoError(t, err)
				require.LessOrEqual(t, oldest, number)
				require.LessOrEqual(t, number, newest)
			}
		}
		require.Equal(t, n, counts["stays"])
		require.Equal(t, n, counts["grows"])
		require.Equal(t, read.Len(), 2*n+counts["comes"], "and nothing else")
	}
	close(stop)
	wg.Wait()
}

// TestCheckpointAndReplace writes a storage whose content others replace and empty.
func TestCheckpointAndReplace(t *testing.T) {
	contents := make([]map[string]interface{}, 2)
	for i := range contents {
		contents[i] = map[string]interface{}{}
		for j := range 1500 {
			contents[i][fmt.Sprintf("both/%d", j)] = strconv.Itoa(i)
			contents[i][fmt.Sprintf("%d/%d", i, j)] = strconv.Itoa(i)
		}
	}
	s := informer.NewResourceVersionStorage()
	require.NoError(t, s.Replace(contents[1]))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.Replace(contents[i%2]); err != nil {
				t.Error(err)
			}
		}
	})
	for range 10 {
		read := informer.NewResourceVersionStorage()
		_, err := read.ReadFrom(bytes.NewReader(checkpointOf(t, s)))
		require.NoError(t, err)
		got := maps.Collect(read.All())
		which, err := strconv.Atoi(got["both/1"])
		require.NoError(t, err)
		want := map[string]string{}
		for key, rv := range contents[which] {
			want[key] = rv.(string)
		}
		require.Equal(t, want, got, "one or the other")
	}
	close(stop)
	wg.Wait()
}

// podUID is a UID as Kubernetes makes them, one for every i.
func podUID(i int) types.UID {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	a, b := random.Uint64(), random.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&(1<<48-1)))
}

// BenchmarkCheckpoint writes and reads a million pods, beside a bufio.Writer and a
// bufio.Reader that take the same bytes an entry at a time, and a walk that does
// nothing else, to memory and to a file. The ratios are of pairs that ran one after
// the other, the median of them: they hold on a busy machine, too.
//
// What is left of WriteTo is above all that memory brings the stems, which lie
// anywhere. What is left of ReadFrom is what lies between bytes and a table that can
// be searched: a third of it is to find the stems of keys in random order, a sixth
// each to put entries into the table and to split segments that are full. The format
// itself is less than a tenth.
//
//	go test -run - -bench Checkpoint -benchtime 5x ./tests/checkpoints
func BenchmarkCheckpoint(b *testing.B) {
	const n = 1_000_000
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	s := informer.NewResourceVersionStorage()
	random := rand.New(rand.NewPCG(1, 2))
	suffix := func(size int) string {
		text := make([]byte, size)
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		return string(text)
	}
	set := ""
	for i := range n {
		if i%10 == 0 {
			set = fmt.Sprintf("service-name-%06d-%s", i/10, suffix(10))
		}
		obj := harness.PartialObject(fmt.Sprintf("team-%04d", i/10%50), set+"-"+suffix(5), strconv.Itoa(300_000_000+random.IntN(100_000_000)), string(podUID(i)))
		if err := s.Add(obj); err != nil {
			b.Fatal(err)
		}
	}
	written := checkpointOf(b, s)
	entry := len(written) / s.Len()
	perObject := func(b *testing.B) {
		b.SetBytes(int64(len(written)))
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.Len()), "ns/object")
	}
	file := func(b *testing.B) *os.File {
		f, err := os.Create(filepath.Join(b.TempDir(), "checkpoint"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = f.Close() })
		return f
	}
	asBufio := func(b *testing.B, w io.Writer) {
		buffered := bufio.NewWriterSize(w, 64<<10)
		for part := range slices.Chunk(written, entry) {
			if _, err := buffered.Write(part); err != nil {
				b.Fatal(err)
			}
		}
		if err := buffered.Flush(); err != nil {
			b.Fatal(err)
		}
	}
	writeTo := func(b *testing.B, w io.Writer) {
		if _, err := s.WriteTo(w); err != nil {
			b.Fatal(err)
		}
	}
	readFrom := func(b *testing.B, s *informer.ResourceVersionStorage) {
		if _, err := s.ReadFrom(bytes.NewReader(written)); err != nil {
			b.Fatal(err)
		}
	}
	fromBufio := func(b *testing.B) {
		part := make([]byte, entry)
		r := bufio.NewReaderSize(bytes.NewReader(written), 64<<10)
		for read := 0; read < len(written); read += len(part) {
			if _, err := io.ReadFull(r, part); err != nil && err != io.ErrUnexpectedEOF {
				b.Fatal(err)
			}
		}
	}
	for name, write := range map[string]func(*testing.B, io.Writer){"impl=WriteTo": writeTo, "impl=bufio": asBufio} {
		b.Run("write/memory/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				write(b, io.Discard)
			}
			perObject(b)
		})
		b.Run("write/file/"+name, func(b *testing.B) {
			f := file(b)
			for b.Loop() {
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					b.Fatal(err)
				}
				write(b, f)
			}
			perObject(b)
		})
		b.Run("write/synced/"+name, func(b *testing.B) {
			for b.Loop() {
				f := file(b)
				write(b, f)
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
			}
			perObject(b)
		})
	}
	ratio := func(b *testing.B, ours, theirs func()) {
		var ratios []float64
		for b.Loop() {
			began := time.Now()
			ours()
			between := time.Now()
			theirs()
			ratios = append(ratios, float64(between.Sub(began))/float64(time.Since(between)))
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[len(ratios)/2], "x-bufio")
	}
	b.Run("write/memory/ratio", func(b *testing.B) {
		ratio(b, func() { writeTo(b, io.Discard) }, func() { asBufio(b, io.Discard) })
	})
	b.Run("write/file/ratio", func(b *testing.B) {
		into := func(write func(*testing.B, io.Writer)) func() {
			f := file(b)
			return func() {
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					b.Fatal(err)
				}
				write(b, f)
			}
		}
		ratio(b, into(writeTo), into(asBufio))
	})
	b.Run("read/memory/ratio", func(b *testing.B) {
		ratio(b, func() { readFrom(b, informer.NewResourceVersionStorage()) }, func() { fromBufio(b) })
	})
	b.Run("read/memory/impl=ReadFrom", func(b *testing.B) {
		b.ReportAllocs()
		read := informer.NewResourceVersionStorage()
		for b.Loop() {
			readFrom(b, read)
		}
		perObject(b)
		b.ReportMetric(float64(len(written))/n, "file-bytes/object")
		b.ReportMetric(float64(s.SizeBytes())/n, "added-bytes/object")
		b.ReportMetric(float64(read.SizeBytes())/n, "read-bytes/object")
	})
	b.Run("read/memory/impl=format", func(b *testing.B) { // into nothing
		b.ReportAllocs()
		for b.Loop() {
			r := checkpoint.NewReader(bytes.NewReader(written))
			for {
				if _, _, err := r.Next(); err == io.EOF {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
		}
		perObject(b)
	})
	b.Run("read/memory/impl=bufio", func(b *testing.B) {
		for b.Loop() {
			fromBufio(b)
		}
		perObject(b)
	})
	// How long others wait for the lock while it is written.
	b.Run("write/others", func(b *testing.B) {
		stop, longest := make(chan struct{}), make(chan time.Duration)
		go func() {
			var most time.Duration
			for i := 0; ; i++ {
				select {
				case <-stop:
					longest <- most
					return
				default:
				}
				began := time.Now()
				if err := s.Add(harness.PartialObject("", "other", strconv.Itoa(i), "")); err != nil {
					b.Error(err)
				}
				most = max(most, time.Since(began))
				time.Sleep(100 * time.Microsecond)
			}
		}()
		for b.Loop() {
			writeTo(b, io.Discard)
		}
		close(stop)
		b.ReportMetric(float64((<-longest).Microseconds()), "longest-Add-us")
	})
}
