package script_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rvinformer/informer/informertest/script"
)

func Example() {
	s, err := script.Parse("example", []byte(`
# An object is deleted while the informer cannot reach its server.
create a/1 a/2
start
expect synced
fault refuse
delete a/1
wait 100ms
heal
expect told deleted a/1
settle 1s
`))
	if err != nil {
		panic(err)
	}
	// In a test, do this in a testing/synctest bubble, without Loopback: no time passes.
	result, err := script.Play(context.Background(), s, script.Ours, script.Options{Loopback: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Err())
	// Output: <nil>
}

// A line that makes no sense is named.
func ExampleParse() {
	s, err := script.Parse("restart", []byte("# A restart.\ncreate a/1\nstart\nstop\nstart again\nsettle 1s\n"))
	fmt.Println(s.Title, err)
	_, err = script.Parse("restart", []byte("create a/1\nstrat\n"))
	fmt.Println(err)
	// Output:
	// A restart. <nil>
	// restart:2: "strat": "strat" is no action
}

// The same numbers make the same script.
func ExampleRandom() {
	write := func(seed uint64) string {
		dice := rand.New(rand.NewPCG(seed, 0))
		return script.Random(dice.IntN, script.RandomOptions{Duration: time.Minute, Writes: 10}).String()
	}
	one, again, other := write(1), write(1), write(2)
	fmt.Println(one == again, one == other)
	// Output: true false
}

// A script says of an informer what it does wrong, also of one that is not ours.
func ExamplePlay() {
	s, err := script.Parse("short", []byte(`
create a/1
start
expect told added a/1
delete a/1
expect told deleted a/1
settle 100ms
`))
	if err != nil {
		panic(err)
	}
	for name, maker := range map[string]script.Maker{"ours": script.Ours, "client-go's": script.ClientGo} {
		result, err := script.Play(context.Background(), s, maker, script.Options{Loopback: true})
		if err != nil {
			panic(err)
		}
		fmt.Println(name, result.Err(), result.Writes, result.Calls)
	}
	// Unordered output:
	// ours <nil> 2 2
	// client-go's <nil> 2 2
}
