package keytable_test

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rvinformer/informer/internal/leaf/keytable"
)

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkBytes measures what a million objects take, all included, beside a
// map[string]uint64 that knows no UIDs.
//
//	go test -run - -bench Bytes -benchtime 1x ./internal/leaf/keytable
func BenchmarkBytes(b *testing.B) {
	const million = 1_000_000
	for _, names := range []struct {
		name string
		n    int
		names
	}{
		{"pods-10", million, pods(10)}, {"pods-10-0.75M", million * 3 / 4, pods(10)}, {"pods-10-1.5M", million * 3 / 2, pods(10)},
		{"pods-10-shuffled", million, func(i int) string { return pods(10)(i * 611953 % million) }},
		{"pods-3", million, pods(3)}, {"pods-1", million, pods(1)}, {"random", million, random}, {"uuids", million, uuids},
	} {
		b.Run(names.name, func(b *testing.B) {
			for b.Loop() {
				n := float64(names.n)
				before := heap()
				table := keytable.New()
				for i := range names.n {
					table.Set(names.names(i), versionOf(i), 0)
				}
				b.ReportMetric(float64(heap()-before)/n, "bytes/object")
				b.ReportMetric(float64(table.SizeBytes())/n, "told/object")
				for part, size := range table.SizeParts() {
					b.ReportMetric(float64(size)/n, part+"/object")
				}
				runtime.KeepAlive(table)
			}
		})
	}
}

// shuffled are n keys in random order, each twice: equal keys lie at other
// addresses, as the keys of a list do.
func shuffled(names names, n int) (stored, asked []string) {
	stored, asked = make([]string, n), make([]string, n)
	for i := range n {
		stored[i] = names(i)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { stored[i], stored[j] = stored[j], stored[i] })
	for i := range n {
		asked[i] = strings.Clone(stored[i])
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(n, func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
	return stored, asked
}

// BenchmarkSpeed is one call of each kind, beside what a map[string]uint64 has for
// it, with a million keys that are asked for in random order. Nothing has the keys in
// a cache; the version that comes with a key was just decoded, and is.
//
//	go test -run - -bench Speed -count 3 ./internal/leaf/keytable
func BenchmarkSpeed(b *testing.B) {
	const n = 1_000_000
	for _, names := range []struct {
		name string
		names
	}{
		{"pods", pods(10)}, {"random", random},
	} {
		stored, asked := shuffled(names.names, n)
		version := versionOf(1)
		number, _ := strconv.ParseUint(version.ResourceVersion, 10, 64)
		table, plain := keytable.New(), map[string]uint64{}
		for _, key := range stored {
			table.Set(key, version, 0)
			plain[key] = number
		}
		generation := table.Begin()
		absent := make([]string, n)
		for i := range n {
			absent[i] = names.names(n + i)
		}
		run := func(op, impl string, call func(i int)) {
			b.Run(names.name+"/op="+op+"/impl="+impl, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					call(i % n)
				}
			})
		}
		var sum uint64
		run("lookup", "map", func(i int) { sum += plain[asked[i]] })
		run("lookup", "table-compare", func(i int) {
			if !table.Compare(asked[i], version).Known {
				b.Fatal("not found")
			}
		})
		run("lookup", "table-show", func(i int) { table.Show(asked[i], version, generation, generation) })
		run("lookup", "table-get", func(i int) { v, _ := table.Get(asked[i]); sum += uint64(len(v.UID)) })
		run("absent", "map", func(i int) { sum += plain[absent[i]] })
		run("absent", "table-compare", func(i int) { table.Compare(absent[i], version) })
		run("update", "map", func(i int) { plain[asked[i]] = number })
		run("update", "table-set", func(i int) { table.Set(asked[i], version, 0) })
		clear(plain)
		table = keytable.New()
		run("insert", "map", func(i int) {
			if i == 0 {
				plain = map[string]uint64{}
			}
			plain[strings.Clone(stored[i])] = number // the key was lent
		})
		run("insert", "table-set", func(i int) {
			if i == 0 {
				table = keytable.New()
			}
			table.Set(stored[i], version, 0)
		})
		run("replace", "map", func(i int) { // a deletion and an addition, for ever
			delete(plain, stored[i])
			plain[strings.Clone(stored[i])] = number
		})
		run("replace", "table-set", func(i int) {
			table.Delete(stored[i])
			table.Set(stored[i], version, 0)
		})
	}
}

// BenchmarkSmall measures what a table of few keys takes, the table itself included: there may be
// one for each of many thousand informers.
//
//	go test -run - -bench Small -benchtime 1x ./internal/leaf/keytable
func BenchmarkSmall(b *testing.B) {
	for _, names := range []struct {
		name string
		names
	}{{"pods-10", pods(10)}, {"random", random}, {"short", func(i int) string { return "team-" + strconv.Itoa(i%7) + "/config-" + strconv.Itoa(i) }}} {
		for _, keys := range []int{0, 1, 5, 10, 20, 24, 32, 33, 40, 50, 64, 65, 80, 100, 200, 500, 1000} {
			b.Run(names.name+"/keys="+strconv.Itoa(keys), func(b *testing.B) {
				for b.Loop() {
					tables := make([]*keytable.Table, 100_000/max(keys, 100))
					told := int64(0)
					before := heap()
					for n := range tables {
						tables[n] = keytable.New()
						for i := range keys {
							tables[n].Set(names.names(i), versionOf(i), 0)
						}
						told += tables[n].SizeBytes()
					}
					each := float64(heap()-before) / float64(len(tables))
					b.ReportMetric(each, "bytes/table")
					b.ReportMetric(float64(told)/float64(len(tables)), "told/table")
					b.ReportMetric(each/float64(max(1, keys)), "bytes/key")
					runtime.KeepAlive(tables)
				}
			})
		}
	}
}

// BenchmarkPass reads all of a million keys, per key: of a map[string]uint64 the strings that it
// has, and of a table strings that are made for it, or lent. What makes strings cannot be faster
// than impl=copy, which has all keys in one text, in order, and has nothing to find and to unpack.
//
//	go test -run - -bench Pass -count 3 ./internal/leaf/keytable
func BenchmarkPass(b *testing.B) {
	const n = 1_000_000
	for _, names := range []struct {
		name string
		names
	}{
		{"pods", pods(10)}, {"random", random},
	} {
		table, plain := keytable.New(), map[string]uint64{}
		for i := range n {
			table.Set(names.names(i), versionOf(i), 0)
			plain[names.names(i)] = uint64(i)
		}
		run := func(impl string, pass func() int) {
			b.Run(names.name+"/impl="+impl, func(b *testing.B) {
				for b.Loop() {
					if pass() != n {
						b.Fatal("keys are missing")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
			})
		}
		var all strings.Builder
		for i := range n {
			all.WriteString(names.names(i))
		}
		sum := 0
		run("copy", func() (count int) {
			keys, versions := make([]string, 0, 2000), make([]string, 0, 2000)
			var piece []byte
			size := all.Len() / n
			for i := range n {
				if cap(piece)-len(piece) < size+20 {
					piece = make([]byte, 0, 2<<10)
				}
				from := len(piece)
				piece = append(piece, all.String()[i*size:][:size]...)
				keys = append(keys, borrow(piece[from:]))
				from = len(piece)
				piece = strconv.AppendUint(piece, 300_000_000+uint64(i), 10)
				versions = append(versions, borrow(piece[from:]))
				if len(keys) == 2000 {
					count += len(keys)
					keys, versions = keys[:0], versions[:0]
				}
			}
			return count + len(keys)
		})
		run("map", func() (count int) {
			for _, number := range plain {
				sum += int(number)
				count++
			}
			return count
		})
		run("lend", func() (count int) {
			for cursor := keytable.Cursor(0); ; {
				cursor = table.LendFrom(cursor, 2000, func(key string, v *keytable.Binary) {
					sum += len(key) + int(v.Number)
					count++
				})
				if cursor == 0 {
					return count
				}
			}
		})
		run("texts", func() (count int) {
			texts := keytable.Texts{ResourceVersions: []string{}}
			for cursor := keytable.Cursor(0); ; {
				texts.Keys, texts.ResourceVersions = texts.Keys[:0], texts.ResourceVersions[:0]
				cursor = table.TextsFrom(cursor, 2000, &texts)
				count += len(texts.Keys)
				if cursor == 0 {
					return count
				}
			}
		})
		run("texts-lent", func() (count int) {
			texts := keytable.Texts{ResourceVersions: []string{}, Lent: true}
			for cursor := keytable.Cursor(0); ; {
				cursor = table.TextsFrom(cursor, 2000, &texts)
				count += len(texts.Keys)
				if cursor == 0 {
					return count
				}
			}
		})
		run("map-keys", func() (count int) { // as "map", but the keys are read, too
			for key, number := range plain {
				sum += int(number) + int(key[0])
				count++
			}
			return count
		})
		run("keys", func() (count int) {
			var texts keytable.Texts
			for cursor := keytable.Cursor(0); ; {
				cursor = table.TextsFrom(cursor, 2000, &texts)
				if cursor == 0 {
					return len(texts.Keys)
				}
			}
		})
	}
}
