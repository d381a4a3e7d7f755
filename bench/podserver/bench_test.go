package podserver

import "testing"

// BenchmarkRender is what a pod costs the server before it is sent.
func BenchmarkRender(b *testing.B) {
	for _, bench := range []struct {
		name     string
		template template
	}{
		{"json", forms()[[2]bool{false, false}].templateOf[listed]},
		{"protobuf", forms()[[2]bool{true, false}].templateOf[listed]},
	} {
		b.Run(bench.name, func(b *testing.B) {
			t := newTiles(bench.template)
			n := t.capacity()
			b.SetBytes(int64(t.size()))
			for sent := 0; sent < b.N; sent += n {
				t.render(n, func(id *identity, k int) { id.set((sent+k)%MaxPods, MaxPods) })
			}
		})
	}
}
