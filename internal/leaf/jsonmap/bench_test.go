package jsonmap_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rvinformer/informer/internal/leaf/jsonmap"
)

// BenchmarkDecode decodes pods one after the other, as an informer does, beside apimachinery, and
// beside copying what was decoded, which makes the same maps and reads no text.
func BenchmarkDecode(b *testing.B) {
	var pool jsonmap.Pool
	var decoded map[string]interface{}
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
			"deepcopy": func([]byte) error {
				runtime.DeepCopyJSON(decoded)
				return nil
			},
		} {
			b.Run(name+"/"+decoder, func(b *testing.B) {
				var err error
				if decoded, err = pool.Decode(texts[0]); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
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
