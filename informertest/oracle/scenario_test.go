package oracle_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest/oracle"
)

// A scenario is what an Oracle is told, one call a line:
//
//	created|updated|deleted KEY UID VERSION     other VERSION
//	restored VERSION KEY/UID/VERSION...
//	start [resumed=VERSION] [known=KEY/VERSION,...] [dead=KEY] [journaled] [ignores-synced] [followers=N]     stop     kill
//	      [shard=lower|upper] (upper has the UIDs A to Z, and lower has AA)
//	add|update|delete|sync KEY UID VERSION [initial] [unknown] [& ANOTHER...] [: END]
//	    END: nil, error, panic or exit; first-failed, both-failed or none-failed for FailedEvents; a
//	    name for what a line "end NAME [END]" ends later
//	listed     synced     status VERSION     checkpoint VERSION
//	queued BYTES LIMIT LARGEST     stored KEY [VERSION]     gave-up KEY     buried [KEY/VERSION...]     settled [KEY/VERSION...]
//	asked N     wait DURATION
type scenario struct {
	t      *testing.T
	oracle *oracle.Oracle
	now    time.Time
	open   map[string]func(error)
	// redelivered ends the newest redelivery.
	redelivered func()
}

func play(t *testing.T, opts oracle.Options, text string) *oracle.Oracle {
	s := &scenario{t: t, now: time.Now(), open: map[string]func(error){}}
	opts.Now = func() time.Time { return s.now }
	s.oracle = oracle.New(opts)
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			s.now = s.now.Add(time.Second)
			s.step(line, strings.Fields(line))
		}
	}
	return s.oracle
}

var writes = map[string]oracle.WriteType{"created": oracle.Created, "updated": oracle.Updated, "deleted": oracle.Deleted}

var changes = map[string]informer.EventType{
	"add": informer.Added, "update": informer.Updated, "delete": informer.Deleted, "sync": informer.Synced,
}

var ends = map[string]error{
	"nil": nil, "error": errFull, "panic": oracle.ErrPanic, "exit": oracle.ErrExit,
	"first-failed": informer.FailedEvents{{Index: 0, Err: errFull}}, "both-failed": informer.FailedEvents{{Index: 0}, {Index: 1}}, "none-failed": informer.FailedEvents{{Index: 7}},
}

var halves = map[string]informer.Shard{
	"lower": {Key: informer.ShardByUID, End: 1 << 63}, "upper": {Key: informer.ShardByUID, Start: 1 << 63},
}

func (s *scenario) step(line string, f []string) {
	o := s.oracle
	switch f[0] {
	case "created", "updated", "deleted":
		o.Wrote(oracle.Write{Type: writes[f[0]], Key: f[1], UID: types.UID(f[2]), ResourceVersion: f[3]})
	case "other":
		o.Wrote(oracle.Write{Type: oracle.Other, ResourceVersion: f[1]})
	case "restored":
		var state []oracle.Write
		for _, w := range f[2:] {
			part := strings.Split(w, "/")
			state = append(state, oracle.Write{Type: oracle.Created, Key: part[0], UID: types.UID(part[1]), ResourceVersion: part[2]})
		}
		o.Restored(f[1], state)
	case "start":
		o.Started(runOf(f[1:]))
	case "stop":
		o.Stopped(false)
	case "kill":
		o.Stopped(true)
	case "add", "update", "delete", "sync":
		s.call(line)
	case "end":
		s.open[f[1]](ends[strings.Join(f[2:], "")])
	case "listed":
		o.Listed()
	case "synced":
		o.Synced()
	case "status", "checkpoint":
		o.Claimed(f[0], f[1])
	case "queued":
		o.Queued(s.number(f[1]), s.number(f[2]), s.number(f[3]))
	case "waiting": // N, and the call that returns meanwhile
		o.Waiting(func() int {
			for _, name := range f[2:] {
				s.open[name](nil)
			}
			return int(s.number(f[1]))
		})
	case "stored":
		o.Stored(f[1], strings.Join(f[2:], ""))
	case "asked":
		for n := range s.number(f[1]) {
			o.Requested(fmt.Sprint("list ", n))
		}
	case "wait":
		d, err := time.ParseDuration(f[1])
		require.NoError(s.t, err)
		s.now = s.now.Add(d)
	case "redelivering":
		s.redelivered = o.Redelivering()
	case "redelivered":
		s.redelivered()
	case "gave-up":
		o.GaveUp(f[1])
	case "buried":
		o.Buried(versionsOf(f[1:]))
	case "settled":
		if len(f) == 1 {
			o.Settled(nil)
			return
		}
		o.Settled(versionsOf(f[1:]))
	default:
		require.Fail(s.t, "no such line", line)
	}
}

func (s *scenario) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(s.t, err)
	return n
}

func runOf(fields []string) (r oracle.Run) {
	for _, f := range fields {
		switch name, value, _ := strings.Cut(f, "="); name {
		case "resumed":
			r.Resumed = value
		case "shard":
			r.Shard = halves[value]
		case "known":
			r.Known = versionsOf(strings.Split(value, ","))
		case "begun":
			r.Begun = map[string]bool{value: true}
		case "dead":
			r.Dead = map[string]bool{value: true}
		case "journaled":
			r.Journaled = true
		case "ignores-synced":
			r.IgnoresSynced = true
		case "followers":
			r.Followers, _ = strconv.Atoi(value)
		}
	}
	return r
}

func versionsOf(fields []string) map[string]string {
	versions := map[string]string{}
	for _, f := range fields {
		if key, version, ok := strings.Cut(f, "/"); ok {
			versions[key] = version
		}
	}
	return versions
}

func (s *scenario) call(line string) {
	line, end, _ := strings.Cut(line, " : ")
	var events []oracle.Event
	for part := range strings.SplitSeq(line, "&") {
		f := strings.Fields(part)
		e := oracle.Event{Type: changes[f[0]], Key: f[1], UID: types.UID(f[2]), ResourceVersion: f[3]}
		e.IsInInitialList = strings.Contains(part, " initial")
		e.FinalStateUnknown = strings.Contains(part, " unknown")
		if e.UID == "-" {
			e.UID = ""
		}
		if e.ResourceVersion == "-" {
			e.ResourceVersion = ""
		}
		events = append(events, e)
	}
	done := s.oracle.Told(events...)
	if err, known := ends[end]; known || end == "" {
		done(err)
	} else {
		s.open[end] = done
	}
}

// violations are what Check finds.
func violations(err error) (found []*oracle.Violation) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			found = append(found, err.(*oracle.Violation))
		}
	}
	return found
}

// guarantees are the names of those that were broken, each once, in the order of
// Validators.
func guarantees(err error) (names []string) {
	for _, v := range violations(err) {
		if len(names) == 0 || names[len(names)-1] != v.Guarantee {
			names = append(names, v.Guarantee)
		}
	}
	return names
}
