package script_test

import (
	"context"
	"fmt"

	"github.com/rvinformer/informer/informertest/script"
)

func Example() {
	s, err := script.Parse("example", []byte(`
# An object is deleted while the informer can not reach its server.
create a/1 a/2
start
expect synced
fault refuse
delete a/1
wait 1s
heal
expect told deleted a/1
settle 5s
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
