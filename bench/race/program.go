package race

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"
)

// Order is what a program of contestants is told on its input: which of them to
// run, or, with none named, to say which there are.
type Order struct {
	Contestant string
	Scenario   Scenario
	Target     Target
	Limits     Limits
	Names      Names  // of the objects that a store is to remember
	Checkpoint string // a file, of Restart and Remember
	// Shard is the part of a cold start, as a shardSelector; the Target's Objects are those that
	// are in it.
	Shard string
	// Handlers is the number of handlers of a cold start that share an informer. Zero is one handler
	// with an informer of its own. Holds measures what is held after a cold start.
	Handlers int
	Holds    bool
	// Many is what there is beside, or instead of, the Target.
	Many *Many `json:",omitempty"`
	// Profile is what the names of profiles begin with; there are none if it is empty.
	Profile string
}

// Main is the program of some contestants: it obeys one order and writes a
// Result, or its entries, to its output.
func Main(contestants ...Contestant) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := obey(ctx, contestants); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func obey(ctx context.Context, contestants []Contestant) error {
	var o Order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	output := json.NewEncoder(os.Stdout)
	if o.Contestant == "" {
		var entries []Entry
		for _, c := range contestants {
			entries = append(entries, c.Entry)
		}
		return output.Encode(entries)
	}
	i := slices.IndexFunc(contestants, func(c Contestant) bool { return c.Name == o.Contestant })
	if i < 0 {
		return fmt.Errorf("there is no contestant %q", o.Contestant)
	}
	r, err := contestants[i].run(ctx, o)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", o.Contestant, o.Scenario, err)
	}
	return output.Encode(r)
}
