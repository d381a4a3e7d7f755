package share

import (
	"cmp"
	"fmt"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/rvinformer/informer/fleet/shards"
	"github.com/rvinformer/informer/mirror/internal/display"
)

// UnitsPage lists the units of this status and their owners, as a text. The status page and the
// metrics have how many there are.
type UnitsPage func() shards.Status

func (status UnitsPage) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	now := status()
	text := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(text, "I am %s; %s\n\nUNIT\tOWNER\tEPOCH\tSINCE\tSTATE\n", now.Identity, owned(now))
	for _, u := range now.Units {
		fmt.Fprintf(text, "%s\t%s\t%d\t%s\t%s\n", u.Unit, cmp.Or(u.Owner, "-"), u.Epoch, display.Round(time.Since(u.Since)), unitState(u))
	}
	for _, gap := range now.Gaps {
		fmt.Fprintf(text, "%s\t-\t-\t-\tNO UNIT HAS IT\n", gap)
	}
	for _, p := range now.Problems {
		fmt.Fprintf(text, "\n%s\n", p)
	}
	_ = text.Flush() // the other side may be gone
}

func unitState(u shards.Unit) string {
	switch {
	case u.Tenure != nil && u.Tenure.Err != nil:
		return fmt.Sprintf("%s here: %s", u.Tenure.Phase, display.Reason(u.Tenure.Err))
	case u.Tenure != nil:
		return fmt.Sprintf("%s here", u.Tenure.Phase)
	case u.Uncovered:
		return "UNCOVERED"
	}
	return "covered"
}
