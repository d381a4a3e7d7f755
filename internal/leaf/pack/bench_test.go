package pack_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rvinformer/informer/internal/leaf/checkpoint"
	"github.com/rvinformer/informer/internal/leaf/pack"
)

func mean(objects []object) float64 {
	n := 0
	for _, o := range objects {
		n += len(o.data)
	}
	return float64(n) / float64(len(objects))
}

func reportSizes(b *testing.B, p *pack.Pack, objects []object) {
	b.ReportMetric(mean(objects), "encoded-bytes/object")
	b.ReportMetric(float64(p.SizeBytes())/float64(len(objects)), "held-bytes/object")
}

func BenchmarkPrepareAndAdd(b *testing.B) {
	none := func(object) string { return "" }
	unique := func(o object) string { return o.name }
	for _, kind := range []struct {
		name    string
		objects func() []object
	}{
		{"pods=5000", func() []object { return pods(5000, 0) }},
		{"pods=100000", func() []object { return pods(100_000, 0) }},
		{"pods=5000,hint=none", func() []object { return hinted(pods(5000, 0), none) }},
		{"pods=5000,hint=unique", func() []object { return hinted(pods(5000, 0), unique) }},
		{"pods=1000,lone", func() []object { return each(15, pods(15_000, 0)) }},
		{"releases=5000", func() []object { return releases(5000) }},
		{"releases=5000,hint=none", func() []object { return hinted(releases(5000), none) }},
		{"releases=5000,hint=unique", func() []object { return hinted(releases(5000), unique) }},
	} {
		b.Run(kind.name, func(b *testing.B) {
			objects := kind.objects()
			b.ReportAllocs()
			var p *pack.Pack
			for b.Loop() {
				p = pack.New()
				fill(p, objects)
			}
			reportSizes(b, p, objects)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(objects)), "ns/object")
		})
	}
}

// BenchmarkUpdate updates each of 5,000 pods ten times in random order.
func BenchmarkUpdate(b *testing.B) {
	order := inRandomOrder(5000, 10)
	var p *pack.Pack
	var objects []object
	for b.Loop() {
		b.StopTimer()
		objects = pods(5000, 0)
		p = pack.New()
		refs := fill(p, objects)
		for len(order) > 0 {
			now := order[:1000]
			order = order[1000:]
			updated := make([]object, len(now))
			for i, k := range now {
				objects[k].update()
				updated[i] = objects[k]
			}
			b.StartTimer()
			for i, k := range now {
				replace(p, refs, k, updated[i])
			}
			b.StopTimer()
		}
		order = inRandomOrder(5000, 10)
		b.StartTimer()
	}
	reportSizes(b, p, objects)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(order)), "ns/object")
}

func BenchmarkRead(b *testing.B) {
	for _, order := range []string{"list", "random"} {
		b.Run(order, func(b *testing.B) {
			objects := pods(5000, 0)
			p := pack.New()
			refs := fill(p, objects)
			requireHas(b, p, refs, objects)
			if order == "random" {
				rand.New(rand.NewPCG(1, 1)).Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
			}
			var buffer []byte
			k := 0
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buffer, err = p.Record(refs[k]).Append(buffer[:0]); err != nil {
					b.Fatal(err)
				}
				k = (k + 1) % len(refs)
			}
		})
	}
}

func requireHas(t require.TestingT, p *pack.Pack, refs []pack.Ref, objects []object) {
	for k, o := range objects {
		r := p.Record(refs[k])
		got, err := r.Append(nil)
		require.NoError(t, err)
		require.Equal(t, string(o.data), string(got))
		require.Equal(t, o.name, string(r.Head()))
	}
}

// BenchmarkSnapshot writes and reads a pack of 100,000 pods.
func BenchmarkSnapshot(b *testing.B) {
	p := pack.New()
	fill(p, pods(100_000, 0))
	var file bytes.Buffer
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			file.Reset()
			out := checkpoint.NewSnapshotWriter(&file).Payload()
			p.Snapshot().Write(out)
			if err := out.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(file.Len()))
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(file.Len()))
		for b.Loop() {
			read, err := read(b, file.Bytes())
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for range read.All() {
				n++
			}
			require.Equal(b, 100_000, n)
		}
	})
}
