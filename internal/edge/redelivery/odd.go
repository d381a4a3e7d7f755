package redelivery

import (
	"fmt"
	"time"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/engine/listwatch"
)

func oddError(resourceVersion string) error {
	return fmt.Errorf("%w: it has version %q, and does not show what is known", api.ErrNotList, resourceVersion)
}

// showsNothing reports whether the list has shown no object, where some are known.
func (p *pass) showsNothing() bool {
	return len(p.seen) == 0 && p.options.Selector == "" && p.Versions.Len() > 0
}

// mayHave reports whether the handler may have the object of a key, as far as the informer knows.
func (p *pass) mayHave(key string) bool {
	doubtful, letter := p.Versions.Doubt(key)
	return p.Queue.Knows(key) || doubtful && (letter == nil || letter.Type != api.Deleted)
}

// isOdd reports whether an answer that shows nothing is no proof that there is nothing, because of its
// version. The server is asked again then, and believed if it insists as one whose lists are empty. Most
// often the informer itself has learnt by then what is gone.
func (p *pass) isOdd(resourceVersion string) bool {
	odd := listwatch.OddityOf(p.Report.LastResourceVersion(), resourceVersion)
	p.odd = p.odd.Heard(odd, true, time.Now())
	return odd != listwatch.Plain && !p.odd.IsEnough()
}
