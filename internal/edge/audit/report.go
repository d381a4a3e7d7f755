package audit

import (
	"hash/maphash"

	"github.com/rvinformer/informer/api"
	"github.com/rvinformer/informer/internal/leaf/keytable"
)

// MaxDifferences is how many differences of each sort a report has. The others are counted.
const MaxDifferences = 100

// report is an api.AuditReport that is made.
type report struct {
	api.AuditReport
	// rest has the differences beyond the first of each sort.
	rest *rest
}

// markRepaired counts and marks the differences that copy does not have any more.
func (r *report) markRepaired(copy Copy) {
	r.Repaired = r.rest.repaired(copy)
	for _, first := range [][]api.AuditDifference{r.Missing, r.Stale, r.Superfluous} {
		for i := range first {
			d := &first[i]
			own, _ := copy.Get(d.Key)
			if d.Repaired = api.AuditVersion(own) != d.Own; d.Repaired {
				r.Repaired++
			}
		}
	}
}

func (r *report) addMissing(key string, server keytable.Version) {
	r.add(&r.Missing, &r.MissingCount, key, server, keytable.Version{})
}

func (r *report) addStale(key string, server, own keytable.Version) {
	r.add(&r.Stale, &r.StaleCount, key, server, own)
}

func (r *report) addSuperfluous(key string, own keytable.Version) {
	r.add(&r.Superfluous, &r.SuperfluousCount, key, keytable.Version{}, own)
}

// add counts a difference of a sort, and adds it if it is one of the first.
func (r *report) add(first *[]api.AuditDifference, count *int, key string, server, own keytable.Version) {
	if *count++; *count <= MaxDifferences {
		*first = append(*first, api.AuditDifference{Key: key, Server: api.AuditVersion(server), Own: api.AuditVersion(own)})
		return
	}
	if r.rest == nil {
		r.rest = &rest{seed: maphash.MakeSeed()}
	}
	r.rest.add(key, own)
}
