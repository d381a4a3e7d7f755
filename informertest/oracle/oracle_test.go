package oracle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rvinformer/informer/informertest/oracle"
)

// cases are histories that each Validator has to find something in, beside ones that
// differ in no more than it takes to be right.
var cases = []struct {
	name string
	opts oracle.Options
	// both is how the two begin.
	both, right, wrong string
	// broken are the guarantees that wrong breaks, all of them; shown is in the message.
	broken, shown string
}{{
	name:  "back in time",
	both:  "start \n created a A v-x \n updated a A v-b \n",
	right: "add a A v-x \n update a A v-b",
	wrong: "add a A v-b \n update a A v-x",
	// The versions have no order but that of the writes.
	broken: "ordered", shown: "call 1: Updated a, version v-x, UID A",
}, {
	name:   "back before a deletion",
	both:   "start \n created a A 1 \n updated a A 2 \n deleted a A 3 \n add a A 1 \n",
	right:  "update a A 2 \n delete a A 3 \n settled",
	wrong:  "delete a A 3 \n add a A 2",
	broken: "ordered", shown: "server: Deleted a, version 3",
}, {
	name:   "back before what was told in vain",
	both:   "start \n created a A 1 \n add a A 1 \n updated a A 2 \n update a A 2 : error \n ",
	right:  "update a A 2 \n settled",
	wrong:  "update a A 1 \n update a A 2 \n settled",
	broken: "ordered", shown: "Updated a, version 1, UID A: back in time, this run has told of version 2",
}, {
	name:   "back before a deletion that was told in vain",
	both:   "start \n created a A 1 \n add a A 1 \n deleted a A 2 \n delete a A 2 : error \n ",
	right:  "delete a A 2 \n settled",
	wrong:  "update a A 1 \n delete a A 2 \n settled",
	broken: "ordered", shown: "this run has told of the deletion in version 2",
}, {
	name:   "back before an object that was told in vain, and that took the place of another",
	both:   "start \n created a A 1 \n add a A 1 \n deleted a A 2 \n created a AA 3 \n updated a AA 4 \n delete a A 2 \n add a AA 4 : panic \n delete a A 2 \n ",
	right:  "add a AA 4 \n settled",
	wrong:  "add a AA 3 \n update a AA 4 \n settled",
	broken: "ordered", shown: "this run has told of version 4",
}, {
	name:   "back before what was told in vain, by a proxy",
	opts:   oracle.Options{Disorder: true},
	both:   "start \n created a A 1 \n updated a A 2 \n add a A 2 : error \n ",
	right:  "deleted a A 3 \n delete a A 2 unknown : error \n add a A 1 \n delete a A 3 \n settled",
	wrong:  "add a A 1 \n update a A 2 \n settled",
	broken: "ordered", shown: "this run has told of version 2",
}, {
	name:   "back before what was told in vain, of a server that was restored",
	both:   "start \n created a A 1 \n add a A 1 \n updated a A 2 \n update a A 2 : error \n restored 1 a/A/1 \n listed \n ",
	right:  "update a A 1 \n settled",
	wrong:  "update a A 1 \n update a A 2 \n update a A 1 \n settled",
	broken: "ordered", shown: "acknowledged is version 1",
}, {
	name:   "resurrected by a proxy",
	opts:   oracle.Options{Disorder: true},
	both:   "start \n created a A 1 \n updated a A 2 \n add a A 2 \n",
	right:  "deleted a A 3 \n delete a A 3 \n add a A 1",
	wrong:  "update a A 1", // which is older, as everybody can see
	broken: "ordered", shown: "back in time",
}, {
	name:   "out of order by a proxy, where versions have no order",
	opts:   oracle.Options{Disorder: true},
	both:   "start \n created a A v-x \n updated a A v-b \n add a A v-b \n",
	right:  "update a A v-x",
	wrong:  "sync a A v-x",
	broken: "ordered", shown: "the handler knows version v-b",
}, {
	name:   "two calls of one key",
	both:   "start \n created a A 1 \n updated a A 2 \n add a A 1 : first\n",
	right:  "end first \n update a A 2",
	wrong:  "update a A 2 \n end first",
	broken: "ordered", shown: "while another call of this key is under way",
}, {
	name:   "an update of an unknown object",
	both:   "start \n created a A 1 \n",
	right:  "add a A 1",
	wrong:  "update a A 1",
	broken: "ordered", shown: "the handler does not know it",
}, {
	name:   "an update of a known object told as new",
	both:   "created a A 1 \n updated a A 2 \n start known=a/1 \n",
	right:  "update a A 2",
	wrong:  "add a A 2 initial",
	broken: "ordered", shown: "knows a in version 1",
}, {
	name:   "another object",
	both:   "start \n created a A 1 \n deleted a A 2 \n created a B 3 \n add a A 1 \n",
	right:  "delete a A 1 unknown \n add a B 3",
	wrong:  "update a B 3",
	broken: "ordered", shown: "knows another object, UID A",
}, {
	name:   "another object, with client-go",
	opts:   oracle.Options{UpdatesReplace: true},
	both:   "start \n created a A 1 \n deleted a A 2 \n created a B 3 \n add a A 1 \n",
	right:  "update a B 3",
	wrong:  "sync a B 3",
	broken: "ordered", shown: "knows version 1",
}, {
	name:   "the keys of a batch that failed",
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 & add b B 2 : error\n updated b B 3 \n",
	right:  "add a A 1 & update b B 3",
	wrong:  "add a A 1",
	broken: "ordered", shown: "not together with [a b]",
}, {
	name:   "an event of a batch that failed by itself",
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 & add b B 2 : first-failed\n updated b B 3 \n",
	right:  "add a A 1 \n update b B 3",
	wrong:  "add a A 1 & update b B 3",
	broken: "ordered", shown: "not together with [a]",
}, {
	name:   "an event that failed by itself after its batch had failed three times",
	both:   "start \n created a A 1 \n created b B 2 \n" + strings.Repeat("add a A 1 & add b B 2 : error \n", 3) + "add a A 1 & add b B 2 : first-failed\n updated b B 3 \n",
	right:  "add a A 1 \n update b B 3",
	wrong:  "add a A 1 & update b B 3",
	broken: "ordered", shown: "not together with [a]",
}, {
	name:   "events that failed by themselves three times",
	both:   "start \n created a A 1 \n created b B 2 \n" + strings.Repeat("add a A 1 & add b B 2 : both-failed \n", 3),
	right:  "add a A 1 & add b B 2",
	wrong:  "add b B 2",
	broken: "ordered", shown: "not together with [a b]",
}, {
	name:   "an event that is named as failed and is not there",
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 & add b B 2 : none-failed\n",
	right:  "add a A 1 & add b B 2 \n settled",
	wrong:  "settled",
	broken: "reliable", shown: "not acknowledged, and there in version 1",
}, {
	name:   "what was acknowledged beside an event that failed by itself",
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 & add b B 2 : first-failed\n",
	right:  "add a A 1",
	wrong:  "add a A 1 \n add b B 2",
	broken: "unique", shown: "Added b",
}, {
	name:   "a batch that has failed three times comes in parts",
	both:   "start \n created a A 1 \n created b B 2 \n created c C 3 \n" + strings.Repeat("add a A 1 & add b B 2 & add c C 3 : error \n", 3),
	right:  "add b B 2 : error \n add a A 1 & add b B 2 : error \n add c C 3 \n add a A 1 \n add b B 2",
	wrong:  "add c C 3 & add a A 1",
	broken: "ordered", shown: "not together with [a b c]",
}, {
	name:   "a failed event that an unreadable state has replaced",
	opts:   oracle.Options{Unreadable: true},
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 : error \n updated a A 3 \n updated a A 4 \n",
	right:  "add a A 4 & add b B 2",
	wrong:  "add a A 4 & add b B 2 \n update a A 3",
	broken: "ordered", shown: "back in time",
}, {
	name:   "a batch that has panicked is tried one by one",
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 & add b B 2 : panic\n",
	right:  "add a A 1 \n add b B 2",
	wrong:  "add a A 1 & add b B 2",
	broken: "ordered", shown: "not together with [a]",
}, {
	name:   "told while no run is on",
	both:   "created a A 1 \n start \n",
	right:  "add a A 1 initial \n stop",
	wrong:  "stop \n add a A 1 initial",
	broken: "ordered", shown: "no run is on",
}, {
	name:   "told twice",
	both:   "start \n created a A 1 \n",
	right:  "add a A 1 : panic \n add a A 1",
	wrong:  "add a A 1 \n update a A 1",
	broken: "unique", shown: "call 1: Updated a, version 1",
}, {
	name:   "told twice by a resync",
	opts:   oracle.Options{Resyncs: true},
	both:   "start \n created a A 1 \n add a A 1 \n",
	right:  "update a A 1",
	wrong:  "add a A 1",
	broken: "unique", shown: "call 1: Added a",
}, {
	name:   "told again as asked",
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 \n add b B 2 \n redelivering \n update a A 1 \n ",
	right:  "update b B 2 \n redelivered \n settled a/1 b/2",
	wrong:  "redelivered \n settled a/1 b/2",
	broken: "redelivered", shown: "it was not told again",
}, {
	name:   "told again what is there",
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 \n add b B 2 \n deleted b B 3 \n redelivering \n ",
	right:  "update a A 1 \n redelivered \n delete b B 3 \n settled a/1",
	wrong:  "delete b B 3 \n redelivered \n settled a/1",
	broken: "redelivered", shown: "a: it was not told again",
}, {
	name:   "told again as asked, and later",
	both:   "start \n created a A 1 \n add a A 1 \n redelivering \n update a A 1 \n redelivered \n settled a/1 \n ",
	right:  "redelivering \n update a A 1",
	wrong:  "update a A 1",
	broken: "unique", shown: "Updated a, version 1",
}, {
	name:   "a deletion told twice",
	both:   "start \n created a A 1 \n add a A 1 \n deleted a A 2 \n",
	right:  "delete a A 2 : error \n delete a A 1 unknown",
	wrong:  "delete a A 2 \n delete a A 1 unknown",
	broken: "unique", shown: "Deleted a, version 1, UID A, final state unknown",
}, {
	name:   "told as changed after a restart",
	both:   "created a A 1 \n start known=a/1 \n",
	right:  "sync a A 1",
	wrong:  "update a A 1",
	broken: "unique", shown: "knows a in version 1",
}, {
	name:   "told again after a kill, and announced by nothing",
	both:   "created a A 1 \n start \n add a A 1 initial \n kill \n",
	right:  "start resumed=1 known=a/1 begun=a \n update a A 1",
	wrong:  "start resumed=1 known=a/1 begun=b \n update a A 1",
	broken: "unique", shown: "knows a in version 1",
}, {
	name:   "told again after a kill",
	both:   "created a A 1 \n start \n add a A 1 initial \n checkpoint 1 \n checkpoint 1 \n created b B 2 \n add b B 2 \n kill \n",
	right:  "start resumed=1 \n add b B 2 \n settled",
	wrong:  "start resumed=1 \n update a A 1",
	broken: "unique", shown: "run killed",
}, {
	name: "a deletion that a restore brings about has the version of a state",
	both: "start \n created a A 1 \n add a A 1 \n updated a A 2 \n update a A 2 \n deleted a A 3 \n created a B 4 \n restored 1 a/A/1 \n deleted a A 2 \n",
	// What is unknown is the deletion before B, which the watch told of before the restore.
	right:  "delete a A 2 unknown \n add a B 4 \n delete a B 4 unknown \n settled",
	wrong:  "delete a A 2 \n add a B 4",
	broken: "ordered", shown: "back in time, acknowledged is version 2",
}, {
	name:   "another object after a kill, of a storage that was filled without UIDs",
	both:   "created a A 1 \n start known=a/1 \n sync a A 1 initial \n",
	right:  "kill \n deleted a A 2 \n created a B 3 \n start known=a/1 \n update a B 3 initial \n settled",
	wrong:  "checkpoint 1 \n checkpoint 1 \n kill \n deleted a A 2 \n created a B 3 \n start known=a/1 \n update a B 3 initial",
	broken: "ordered", shown: "the handler knows another object, UID A",
}, {
	name:   "an old state of a stale list after a kill",
	opts:   oracle.Options{StaleLists: true},
	both:   "start \n created a A 1 \n created b B 2 \n add b B 2 \n add a A 1 \n deleted a A 3 \n updated b B 4 \n update b B 4 \n delete a A 3 \n kill \n",
	right:  "start known=b/2 \n add a A 1 initial \n delete a A 1 unknown \n update b B 4 \n settled",
	wrong:  "start known=b/4 \n add a A 1 initial", // a list not older than version 4 does not show it
	broken: "ordered", shown: "back in time, acknowledged is version 3",
}, {
	name:   "a deletion by a stale list after a kill",
	opts:   oracle.Options{StaleLists: true},
	both:   "start \n created a A 1 \n created b B 2 \n add b B 2 \n add a A 1 : error \n kill \n deleted a A 3 \n created a C 4 \n updated b B 5 \n start known=a/,b/2 \n add a C 4 \n update b B 5 \n kill \n",
	right:  "start known=a/,b/2 \n delete a - - initial unknown \n update b B 5 \n add a C 4 \n settled",
	wrong:  "start known=a/,b/5 \n delete a - - initial unknown",
	broken: "no-false-delete", shown: "it has been there all the time since version 4",
}, {
	name:   "a deletion after a kill that was acknowledged before, and has failed since",
	opts:   oracle.Options{StaleLists: true},
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 \n add b B 2 \n deleted a A 3 \n delete a A 3 \n created a C 4 \n add a C 4 : error \n deleted a C 5 \n updated b B 6 \n update b B 6 \n kill \n",
	right:  "start known=b/6 \n delete a - - initial unknown \n settled",
	wrong:  "start known=b/6 \n add a A 1 initial",
	broken: "ordered", shown: "back in time, acknowledged is version 3",
}, {
	name: "a deletion after a kill that has failed since a watch went on from before another deletion",
	opts: oracle.Options{StaleLists: true},
	both: "start \n created a A 1 \n created b B 2 \n add a A 1 \n add b B 2 \n deleted a A 3 \n delete a A 3 \n kill \n " +
		"start resumed=2 known=b/2 \n created a C 4 \n add a C 4 : error \n updated b B 5 \n update b B 5 \n kill \n",
	right:  "deleted a C 6 \n start known=b/5 \n delete a - - initial unknown \n settled",
	wrong:  "start known=b/5 \n delete a - - initial unknown",
	broken: "no-false-delete", shown: "it has been there all the time since version 4",
}, {
	name:   "an old state after a kill, and no list is stale",
	both:   "start \n created a A 1 \n created b B 2 \n add b B 2 \n add a A 1 \n deleted a A 3 \n delete a A 3 \n kill \n",
	right:  "start known=b/2 \n sync b B 2 initial \n settled",
	wrong:  "start known=b/2 \n add a A 1 initial",
	broken: "ordered", shown: "back in time, acknowledged is version 3",
}, {
	name:   "a deletion told again by a watch",
	both:   "start \n created a A 1 \n add a A 1 \n deleted a A 2 \n delete a A 2 \n stop \n",
	right:  "start resumed=1 known= \n delete a A 2",
	wrong:  "start resumed=2 known= \n delete a A 2",
	broken: "unique", shown: "resumed from version 2",
}, {
	name:   "known, and the version that a restore brought back or that came again after it",
	both:   "start \n created a A 1 \n updated a A 2 \n add a A 2 \n",
	right:  "restored 1 a/A/1 \n updated a A 2 \n update a A 2",
	wrong:  "restored 2 a/A/2 \n update a A 2",
	broken: "unique", shown: "restored to version 2",
}, {
	name:   "an update is lost",
	both:   "start \n created a A 1 \n add a A 1 \n updated a A 2 \n",
	right:  "update a A 2 \n settled",
	wrong:  "settled",
	broken: "reliable", shown: "acknowledged only in version 1, UID A, and there in version 2, UID A, since 4.000s",
}, {
	name:   "an object is never told",
	both:   "start \n created a A 1 \n",
	right:  "add a A 1 \n settled",
	wrong:  "add a A 1 : error \n settled",
	broken: "reliable", shown: "call 0 failed: full",
}, {
	name:   "a deletion is lost while no informer runs",
	both:   "start \n created a A 1 \n add a A 1 \n stop \n deleted a A 2 \n start known=a/1 \n",
	right:  "delete a A 1 unknown \n settled",
	wrong:  "settled",
	broken: "reliable", shown: "its deletion was not acknowledged",
}, {
	name: "what was given up comes with the next change",
	both: "start \n created a A 1 \n add a A 1 : panic \n gave-up a \n",
	// And what the handler has ended its goroutine for.
	right:  "settled \n updated a A 2 \n update a A 2 : exit \n settled",
	wrong:  "updated a A 2 \n settled",
	broken: "reliable", shown: "gave up a",
}, {
	name:   "what was given up does not come with a restore that changes nothing",
	both:   "start \n created a A 1 \n add a A 1 : panic \n gave-up a \n",
	right:  "restored 1 a/A/1 \n settled",
	wrong:  "restored 1 a/B/1 \n settled",
	broken: "reliable", shown: "gave up a",
}, {
	name:   "what was given up comes with a list after a restore that changes nothing",
	both:   "start \n created a A 1 \n add a A 1 : panic \n gave-up a \n restored 1 a/A/1 \n",
	right:  "settled \n listed \n add a A 1 \n settled",
	wrong:  "listed \n settled",
	broken: "reliable", shown: "gave up a",
}, {
	name:   "only a killed run knew it",
	opts:   oracle.Options{SeesLists: true},
	both:   "start \n created a A 1 \n add a A 1 \n kill \n deleted a A 2 \n",
	right:  "start resumed=0 known= \n listed \n settled",
	wrong:  "start resumed=0 known= \n settled",
	broken: "reliable", shown: "run killed",
}, {
	name:   "a handler that begins with nothing",
	both:   "start \n created a A 1 \n created b B 2 \n add a A 1 \n add b B 2 \n stop \n deleted a A 3 \n start \n",
	right:  "add b B 2 initial \n settled",
	wrong:  "settled",
	broken: "reliable", shown: "not acknowledged, and there in version 2",
}, {
	name:   "deletes what lives",
	both:   "start \n created a A 1 \n add a A 1 \n",
	right:  "deleted a A 2 \n created a B 3 \n delete a A 1 unknown",
	wrong:  "delete a A 1 unknown",
	broken: "no-false-delete", shown: "there all the time since version 1",
}, {
	name:   "deletes what was created again",
	both:   "start \n created a A 1 \n add a A 1 \n deleted a A 2 \n created a B 3 \n delete a A 2 \n add a B 3 \n updated a B 4 \n",
	right:  "deleted a B 5 \n delete a B 5",
	wrong:  "delete a B 3 unknown",
	broken: "no-false-delete", shown: "there all the time since version 3",
}, {
	name:   "deletes what a restore has left",
	both:   "start \n created a A 1 \n add a A 1 \n created b B 2 \n",
	right:  "restored 0 \n delete a A 1 unknown",
	wrong:  "restored 1 a/A/1 \n delete a A 1 unknown",
	broken: "no-false-delete", shown: "server: restored to version 1, with a in version 1",
}, {
	name:   "deletes what a restore has brought back",
	both:   "start \n created a A 1 \n updated a A 2 \n add a A 2 \n deleted a A 3 \n",
	right:  "restored 1 a/A/1 \n delete a A 3 \n add a A 1",
	wrong:  "delete a A 3 \n restored 1 a/A/1 \n add a A 1 \n delete a A 1 unknown",
	broken: "no-false-delete", shown: "restored to version 1",
}, {
	name:   "deletes what a storage knows without its UID",
	both:   "created a A 1 \n created b B 2 \n deleted b B 3 \n start known=a/1,b/2 \n",
	right:  "delete b B 2 unknown \n sync a A 1",
	wrong:  "delete b B 2 unknown \n delete a - 1 unknown",
	broken: "no-false-delete", shown: "knows a in version 1",
}, {
	name:   "a state that never was",
	both:   "start \n created a A 1 \n add a A 1 \n",
	right:  "updated a A 2 \n update a A 2",
	wrong:  "update a A 2",
	broken: "authentic", shown: "the server never had that version",
}, {
	name:   "a write that is recorded late",
	opts:   oracle.Options{Late: 2 * time.Second},
	both:   "start \n add a A 1 \n other 5 \n",
	right:  "created a A 1 \n settled",
	wrong:  "other 6 \n created a A 1 \n settled",
	broken: "authentic", shown: "the server never had that version",
}, {
	name:   "what was there before the recording",
	both:   "restored 7 a/A/1 \n start \n",
	right:  "add a A 1 initial \n synced \n settled a/1",
	wrong:  "add a A 7 initial",
	broken: "authentic", shown: "restored to version 7",
}, {
	name:   "the UID of another object",
	both:   "start \n created a A 1 \n",
	right:  "add a A 1",
	wrong:  "add a X 1",
	broken: "authentic", shown: "on the server, that version has UID A",
}, {
	name:   "a deletion of an object that never was",
	both:   "start \n created a A 1 \n deleted a A 2 \n created b B 3 \n add a A 1 \n",
	right:  "delete a A 2",
	wrong:  "delete a A 3",
	broken: "authentic", shown: "nor its deletion",
}, {
	name:   "of an epoch before",
	both:   "start \n created a A 1 \n updated a A 2 \n restored 1 a/A/1 \n",
	right:  "add a A 2 \n update a A 1",
	wrong:  "add a A 3",
	broken: "authentic", shown: "never had that version",
}, {
	name:   "a checkpoint that comes too early",
	both:   "start \n created a A 1 \n created b B 2 \n add b B 2 \n",
	right:  "checkpoint 0 \n add a A 1 \n checkpoint 2",
	wrong:  "checkpoint 1",
	broken: "resumable", shown: "checkpoint claims all up to version 1",
}, {
	name:   "goes on too late after a kill",
	both:   "start \n created a A 1 \n add a A 1 \n checkpoint 1 \n updated a A 2 \n update a A 2 : never \n kill \n",
	right:  "start resumed=1 known=a/1",
	wrong:  "start resumed=2 known=a/2",
	broken: "resumable", shown: "resumed from version 2",
}, {
	name:   "a checkpoint with less than its version says",
	both:   "start \n created a A 1 \n add a A 1 \n updated a A 2 \n update a A 2 \n kill \n",
	right:  "start resumed=1 known=a/1 \n kill \n start resumed=2 known=a/2",
	wrong:  "start resumed=2 known=a/1",
	broken: "resumable", shown: "known in version 1, and in version 2 before version 2",
}, {
	name:   "what was acknowledged is not saved at the end of a run",
	both:   "start \n created a A 1 \n add a A 1 \n",
	right:  "kill \n start known=b/0 \n add a A 1 \n kill",
	wrong:  "stop \n start known=b/0",
	broken: "resumable", shown: "the next run does not know it",
}, {
	name:   "a status that comes too early",
	both:   "start \n created a A 1 \n add a A 1 : call\n other 5 \n",
	right:  "status 0 \n end call \n status 5",
	wrong:  "status 5",
	broken: "bookmarkable", shown: "version 1 is not",
}, {
	name:   "a status past an end that is recorded late",
	opts:   oracle.Options{Late: 5 * time.Second},
	both:   "start \n created a A 1 \n status 3 \n ",
	right:  "deleted a A 2 \n other 3 \n settled",
	wrong:  "updated a A 2 \n other 3",
	broken: "bookmarkable", shown: "version 1 is not",
}, {
	name:   "a status past what was given up",
	opts:   oracle.Options{Panics: 1},
	both:   "start \n created a A 1 \n add a A 1 : panic \n gave-up a \n other 2 \n ",
	right:  "status 2 \n updated a A 3 \n status 2 \n update a A 3 \n status 3",
	wrong:  "status 2 \n updated a A 3 \n status 3",
	broken: "bookmarkable", shown: "version 3 is not",
}, {
	name:   "a dead letter that is gone from a checkpoint",
	opts:   oracle.Options{Panics: 1},
	both:   "start \n created a A 1 \n add a A 1 \n updated a A 2 \n update a A 2 : panic \n gave-up a \n buried a/2 \n checkpoint 2 \n other 3 \n ",
	right:  "buried a/2 \n checkpoint 3 \n updated a A 4 \n update a A 4 \n buried \n checkpoint 4",
	wrong:  "buried \n checkpoint 3",
	broken: "resumable", shown: "all up to version 3 is acknowledged, it is said, and version 2 is not",
}, {
	name: "a dead letter of a deletion that was taken in, and of the next object",
	opts: oracle.Options{Panics: 1},
	both: "start \n created a A 1 \n add a A 1 \n deleted a A 2 \n created a AA 3 \n delete a A 2 : panic \n gave-up a \n buried a/1 \n checkpoint 3 \n " +
		"delete a A 2 \n buried a/1 \n stop \n ",
	right:  "start known=a/ dead=a",
	wrong:  "start known=a/",
	broken: "resumable", shown: "the next run knows it in version , and it is not what the handler has acknowledged",
}, {
	name:   "a status past a deletion",
	both:   "start \n created a A 1 \n add a A 1 \n deleted a A 3 \n created b B 7 \n deleted b B 8 \n created c C 9 \n",
	right:  "status 2 \n delete a A 3 \n status 8",
	wrong:  "status 4",
	broken: "bookmarkable", shown: "the deletion in version 3",
}, {
	name:   "a status in a version that was never written",
	both:   "start \n created a A 10 \n created b B 20 \n created c C 30 \n add a A 10 \n",
	right:  "status 15",
	wrong:  "status 25",
	broken: "bookmarkable", shown: "b: all up to version 25 is acknowledged, it is said, and version 20 is not",
}, {
	name:   "opaque versions",
	both:   "start \n created a A v-z \n other v-y \n created b B v-x \n add a A v-z \n",
	right:  "status v-y \n status v-unknown",
	wrong:  "status v-x",
	broken: "bookmarkable", shown: "status claims all up to version v-x",
}, {
	name:   "a status of an epoch before",
	opts:   oracle.Options{SeesLists: true},
	both:   "start \n created a A 1 \n add a A 1 \n updated a A 2 \n update a A 2 \n restored 1 a/A/1 \n updated a A 2 \n updated a A 3 \n",
	right:  "status 3 \n listed \n status 2 \n update a A 3 \n status 3",
	wrong:  "listed \n status 3",
	broken: "bookmarkable", shown: "restored to version 1",
}, {
	name:   "a status of a run that began after a restore",
	both:   "start \n created a A 1 \n add a A 1 \n updated a A 2 \n restored 1 a/A/1 \n stop \n start known=a/1 \n updated a A 3 \n",
	right:  "update a A 3 \n status 3",
	wrong:  "status 3",
	broken: "bookmarkable", shown: "restored to version 1",
}, {
	name:   "told as initial after the list",
	both:   "created a A 1 \n start \n add a A 1 initial \n created b B 2 \n",
	right:  "add b B 2 initial \n synced",
	wrong:  "synced \n add b B 2 initial",
	broken: "initial-list", shown: "after the informer was seen synced",
}, {
	name:   "not told as initial",
	both:   "created a A 1 \n start \n",
	right:  "updated a A 2 \n add a A 2 \n synced",
	wrong:  "add a A 1 \n synced",
	broken: "initial-list", shown: "which was there when the run began",
}, {
	name:   "synced before the handler has returned",
	both:   "start \n created a A 1 \n add a A 1 initial : call\n",
	right:  "end call \n synced",
	wrong:  "synced \n end call",
	broken: "synced", shown: "has not returned, or has failed",
}, {
	name:   "synced before the handler has succeeded",
	both:   "start \n created a A 1 \n add a A 1 initial : error\n",
	right:  "add a A 1 initial \n synced",
	wrong:  "synced \n add a A 1",
	broken: "synced", shown: "call 0 failed: full",
}, {
	name:   "synced with a list that is stale",
	opts:   oracle.Options{StaleLists: true},
	both:   "created a A 1 \n start \n",
	right:  "synced \n add a A 1",
	wrong:  "add a A 1 initial : call \n synced",
	broken: "synced", shown: "has not returned",
}, {
	name:   "synced with objects that cannot be read",
	opts:   oracle.Options{Unreadable: true},
	both:   "created a A 1 \n start \n",
	right:  "synced \n status 1 \n add a A 1",
	wrong:  "add a A 1 initial : call \n synced",
	broken: "synced", shown: "has not returned",
}, {
	name:   "synced after an event was passed over",
	opts:   oracle.Options{SeesLists: true},
	both:   "created a A 1 \n created b B 2 \n start \n listed \n add a A 1 initial : exit\n listed \n",
	right:  "add b B 2 initial \n synced",
	wrong:  "synced",
	broken: "synced", shown: "there in version 2 before the run began",
}, {
	name:   "synced too early",
	both:   "created a A 1 \n start \n created b B 2 \n",
	right:  "add a A 1 initial \n synced",
	wrong:  "add b B 2 initial \n synced",
	broken: "synced", shown: "there in version 1 before the run began, is not acknowledged",
}, {
	name:   "synced before a deletion",
	both:   "created a A 1 \n deleted a A 2 \n start known=a/1 \n",
	right:  "delete a A 1 unknown \n synced",
	wrong:  "synced",
	broken: "synced", shown: "the deletion of this object, gone before the run began",
}, {
	name:   "synced before it runs",
	right:  "start \n synced",
	wrong:  "synced",
	broken: "synced", shown: "before any run began",
}, {
	name:   "more than the budget",
	opts:   oracle.Options{Informers: 2},
	right:  "queued 1200 1000 100",
	wrong:  "queued 1201 1000 100",
	broken: "memory", shown: "1201 bytes queued of 1000, largest object 100",
}, {
	name:   "stored is another version",
	both:   "start \n created a A 1 \n updated a A 2 \n add a A 2 \n",
	right:  "settled a/2",
	wrong:  "settled a/1",
	broken: "equal", shown: "settled, stored is 1",
}, {
	name:   "stored is what is gone",
	both:   "start \n created a A 1 \n deleted a A 2 \n created b B 3 \n add b B 3 \n",
	right:  "settled b/3",
	wrong:  "settled b/3 a/1",
	broken: "equal", shown: "stored in version 1, and is gone since 3.000s",
}, {
	name:   "not stored",
	both:   "start \n created a A 1 \n add a A 1 \n",
	right:  "settled a/1",
	wrong:  "settled -",
	broken: "equal", shown: "settled, not stored",
}, {
	name:   "told as unchanged against its wish",
	both:   "start \n created a A 1 \n add a A 1 \n stop \n",
	right:  "start known=a/1 \n sync a A 1",
	wrong:  "start known=a/1 ignores-synced \n sync a A 1",
	broken: "unique", shown: "which this run was not to tell",
}, {
	name:   "not given back",
	both:   "start \n queued 100 1000 100 \n",
	right:  "stop \n queued 0 1000 100 \n start known= \n queued 100 1000 100 \n kill \n queued 100 1000 100",
	wrong:  "stop \n queued 100 1000 100",
	broken: "memory", shown: "and the run has stopped",
}, {
	name:   "not given back by another one",
	opts:   oracle.Options{Informers: 2},
	both:   "start \n stop \n",
	right:  "queued 100 1000 100",
	wrong:  "queued 1201 1000 100",
	broken: "memory", shown: "informers: 2",
}, {
	name:   "does not count what the handler has",
	both:   "start \n created a A 1 \n created b B 2 \n waiting 2 \n add a A 1 & add b B 2 : x \n waiting 3 \n waiting 0 x \n waiting 0 \n updated a A 3 \n update a A 3 : y \n",
	right:  "waiting 1 \n end y nil \n waiting 0",
	wrong:  "waiting 0",
	broken: "memory", shown: "0 keys are said to wait, and the handler is called with 1",
}, {
	name:   "counts what it has told for ever",
	both:   "start \n created a A 1 \n waiting 1 \n add a A 1 \n waiting 1 \n settled \n waiting 0 \n",
	right:  "updated a A 2 \n waiting 1 \n update a A 2 \n settled \n waiting 0 \n stop \n waiting 1",
	wrong:  "waiting 1",
	broken: "memory", shown: "1 keys are said to wait, and all has settled",
}, {
	name:   "stored before it is acknowledged",
	both:   "start \n created a A 1 \n stored a \n add a A 1 \n updated a A 2 \n update a A 2 : error\n",
	right:  "stored a 1 \n update a A 2 \n stored a 2",
	wrong:  "stored a 2",
	broken: "stored", shown: "acknowledged in version 1, and stored in version 2",
}, {
	name:   "stored too late",
	both:   "start \n created a A 1 \n stored a \n add a A 1 \n",
	right:  "stored a 1 \n stop \n stored a",
	wrong:  "stored a",
	broken: "stored", shown: "acknowledged in version 1, and not stored",
}, {
	name:   "stored after its deletion",
	both:   "created a A 1 \n start known=a/1 \n deleted a A 2 \n stored a 1 \n delete a A 2 \n",
	right:  "stored a",
	wrong:  "stored a 1",
	broken: "stored", shown: "stored in version 1, and not acknowledged",
}, {
	name:   "stored after a crash",
	both:   "start \n created a A 1 \n add a A 1 \n kill \n start known= \n",
	right:  "stored a \n add a A 1 \n stored a 1",
	wrong:  "stored a \n add a A 1 \n stored a",
	broken: "stored", shown: "not stored",
}, {
	name: "given up too early",
	opts: oracle.Options{Panics: 2},
	both: "start \n created a A 1 \n add a A 1 : panic \n stop \n start known=a/1 \n updated a A 2 \n created b B 3 \n " +
		"update a A 2 & add b B 3 : panic \n",
	right:  "update a A 2 : panic \n gave-up a",
	wrong:  "gave-up a", // what panicked in another run counts for nothing
	broken: "persistent", shown: "given up after 1 calls that panicked, of 2",
}, {
	name:   "given up early after a success",
	opts:   oracle.Options{Panics: 2},
	both:   "start \n created a A 1 \n add a A 1 : panic \n add a A 1 \n updated a A 2 \n update a A 2 : panic \n ",
	right:  "update a A 2 : panic \n gave-up a",
	wrong:  "gave-up a",
	broken: "persistent", shown: "given up after 1 calls that panicked, of 2",
}, {
	name:   "given up early after a deletion",
	opts:   oracle.Options{Panics: 3},
	both:   "start \n created a A 1 \n add a A 1 \n deleted a A 2 \n created a AA 3 \n delete a A 2 \n add a AA 3 : panic \n ",
	right:  "delete a A 2 \n add a AA 3 : panic \n delete a A 2 \n add a AA 3 : panic \n gave-up a",
	wrong:  "add a AA 3 \n deleted a AA 4 \n delete a AA 4 : panic \n delete a AA 4 \n created a A 5 \n add a A 5 : panic \n add a A 5 : panic \n gave-up a",
	broken: "persistent", shown: "given up after 2 calls that panicked, of 3",
}, {
	name:   "given up early, where panics do not matter",
	opts:   oracle.Options{Refusals: 2},
	both:   "start \n created a A 1 \n add a A 1 : error \n ",
	right:  "add a A 1 : panic \n gave-up a",
	wrong:  "gave-up a",
	broken: "persistent", shown: "given up after 1 calls that failed for it alone, of 2",
}, {
	name:   "asks without a pause",
	both:   "start \n asked 125 \n wait 57s \n",
	right:  "wait 1s \n asked 125 \n stop \n start known= \n asked 125",
	wrong:  "asked 2",
	broken: "paced", shown: "126 requests within 59s, and 125 may come in a minute",
}, {
	name:   "several handlers ask without a pause",
	both:   "start followers=2 \n asked 250 \n ",
	right:  "wait 1m \n asked 250",
	wrong:  "asked 1",
	broken: "paced", shown: "251 requests within 1s, and 250 may come in a minute",
}, {
	name:   "tells of an object outside the shard",
	both:   "start shard=lower \n created a A 1 \n created b AA 2 \n ",
	right:  "add b AA 2 \n settled",
	wrong:  "add b AA 2 \n add a A 1",
	broken: "shard", shown: "and it is not in the shard",
}, {
	name:   "tells of an object that has left the shard",
	both:   "start \n created a A 1 \n add a A 1 \n stop \n start shard=lower known=a/1 \n listed \n updated a A 2 \n ",
	right:  "settled",
	wrong:  "add a A 2",
	broken: "shard", shown: "and it is not in the shard",
}, {
	name:   "does not tell of an object that has come to the shard",
	both:   "start shard=lower \n created a A 1 \n other 2 \n status 2 \n settled \n stop \n start shard=upper known= \n listed \n ",
	right:  "add a A 1 initial \n status 2 \n settled",
	wrong:  "settled",
	broken: "reliable", shown: "not acknowledged, and there in version 1",
}, {
	name:   "claims what has come to the shard too early",
	both:   "start shard=lower \n created a A 1 \n other 2 \n status 2 \n stop \n start shard=upper known= \n listed \n ",
	right:  "add a A 1 initial \n status 2",
	wrong:  "status 2",
	broken: "bookmarkable", shown: "all up to version 2 is acknowledged, it is said, and version 1 is not",
}, {
	name:   "goes on from a checkpoint of a part of the shard",
	both:   "start shard=lower \n created a A 1 \n created b AA 2 \n add b AA 2 \n stop \n ",
	right:  "start shard=lower resumed=2 known=b/2 \n settled",
	wrong:  "start resumed=2 known=b/2 \n add a A 1 \n settled",
	broken: "resumable", shown: "not known, and in version 1 before version 2, from which the run goes on",
}, {
	name:   "keeps what has left the shard",
	both:   "start \n created a A 1 \n add a A 1 \n stop \n start shard=lower known=a/1 \n ",
	right:  "settled",
	wrong:  "settled a/1",
	broken: "equal", shown: "stored in version 1, and not in the shard",
}}

func TestValidators(t *testing.T) {
	caught := map[string]bool{}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			require.NoError(t, play(t, c.opts, c.both+c.right).Check(), "right")
			err := play(t, c.opts, c.both+c.wrong).Check()
			require.Equal(t, []string{c.broken}, guarantees(err), "%v", err)
			require.ErrorContains(t, err, c.shown)
		})
		caught[c.broken] = true
	}
	for _, v := range oracle.Validators() {
		require.True(t, caught[v.Name], "no history is wrong for %s", v.Name)
		require.NotEmpty(t, v.Doc)
	}
}

// Where an event may come after a newer one, no version says that it was acknowledged.
func TestOvertakenEventsAreNotClaimed(t *testing.T) {
	const text = "start \n created a A 1 \n created b B 2 \n add b B 2 \n status 2 \n checkpoint 2 \n stop \n start resumed=2 known=b/2 \n add a A 1 \n settled a/1 b/2"
	require.Equal(t, []string{"resumable", "bookmarkable"}, guarantees(play(t, oracle.Options{}, text).Check()))
	require.NoError(t, play(t, oracle.Options{Overtaken: true}, text).Check())
	lost := strings.Replace(text, "add a A 1 \n settled a/1", "settled", 1)
	require.Equal(t, []string{"reliable", "equal"}, guarantees(play(t, oracle.Options{Overtaken: true}, lost).Check()))
}

// Whatever the goroutines of a program whose death is only played go on to do, it is not recorded.
func TestTheDeadSayNothing(t *testing.T) {
	opts := oracle.Options{SeesLists: true, Panics: 6}
	const life = "created a A 1 \n start \n add a A 1 initial : call \n kill \n"
	dead := play(t, opts, life+
		"add a A 1 \n update b B 9 : error \n end call \n listed \n synced \n status 9 \n checkpoint 9 \n queued 9 1 1 \n stored a 9 \n gave-up a")
	dead.Kept(oracle.Event{Key: "a", ResourceVersion: "1", Object: &metav1.PartialObjectMetadata{}})
	require.Equal(t, play(t, opts, life).History().String(), dead.History().String())
	require.NoError(t, dead.Check())

	// The next one does, and a call of the one before is not recorded.
	const next = life + "start known= \n"
	silence := play(t, opts, next).History().String()
	for _, late := range []string{"end call", "end call error"} {
		require.Equal(t, silence, play(t, opts, next+late).History().String())
	}
	for _, alive := range []string{"add a A 1", "listed", "synced", "status 1", "checkpoint 1", "queued 1 1 1", "stored a", "gave-up a"} {
		require.NotEqual(t, silence, play(t, opts, next+alive).History().String(), alive)
	}
}

// A question how many keys wait that the death of a process interrupts says nothing of the
// questions of the next one.
func TestAQuestionThatADeathInterrupts(t *testing.T) {
	o := play(t, oracle.Options{Panics: 6}, "created a A 1 \n start \n kill \n")
	o.Waiting(func() int {
		o.Started(oracle.Run{Known: map[string]string{}})
		return 0
	})
	var returned func(error)
	o.Waiting(func() int {
		returned = o.Told(oracle.Event{Type: changes["add"], Key: "a", ResourceVersion: "1", UID: "A", IsInInitialList: true})
		o.Waiting(func() int { return 1 })
		return 0 // as it was before the call
	})
	returned(nil)
	require.NoError(t, o.Check())
}

func TestALongHistoryIsCut(t *testing.T) {
	text := "start \n created a A 1 \n add a A 1 \n"
	for i := range 100 {
		text += fmt.Sprintf("updated a A %d \n created b%d B 1%d \n", i+2, i, i)
	}
	found := violations(play(t, oracle.Options{}, text+"delete a A 1 unknown").Check())
	require.Len(t, found, 1)
	lines := found[0].History
	require.Len(t, lines, 31)
	require.Contains(t, lines[0], "run started")
	require.Contains(t, lines[1], "server: Created a, version 1, UID A")
	require.Contains(t, lines[10], "more")
	require.Contains(t, lines[30], "call 1: Deleted a")
	require.NotContains(t, strings.Join(lines, "\n"), "b1")
}
