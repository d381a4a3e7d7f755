package jsonmap_test

import (
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/jsonmap"
)

// BenchmarkDecode decodes pods one after the other, as an informer does, beside apimachinery.
func BenchmarkDecode(b *testing.B) {
	var pool jsonmap.Pool
	for name, texts := range map[string][][]byte{"pods": pods(b, 500), "smallpods": smallPods(b, 500)} {
		for decoder, decode := range map[string]func(text []byte) error{
			"jsonmap": func(text []byte) error {
				_, err := pool.Decode(text)
				return err
			},
			"apimachinery": func(text []byte) error {
				var object map[string]interface{}
				return utiljson.Unmarshal(text, &object)
			},
		} {
			b.Run(name+"/"+decoder, func(b *testing.B) {
				b.ReportAllocs()
				size := 0
				for i := range b.N {
					text := texts[i%len(texts)]
					if err := decode(text); err != nil {
						b.Fatal(err)
					}
					size += len(text)
				}
				b.SetBytes(int64(size / b.N))
			})
		}
	}
}
