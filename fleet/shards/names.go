package shards

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rvinformer/informer/fleet"
)

// The labels of Leases. A selector by labelFleet and labelRole finds all of one kind.
const (
	labelFleet   = "rvinformer.dev/fleet"
	labelRole    = "rvinformer.dev/role"
	labelCluster = "rvinformer.dev/cluster" // only where the name can be the value of a label
	labelGroup   = "rvinformer.dev/group"   // the same

	// Of a member: the digest of the units that it knows, and "true" while it takes no units,
	// because it stops, or does not see the Leases.
	labelUnits   = "rvinformer.dev/units"
	labelLeaving = "rvinformer.dev/leaving"

	roleMember = "member"
	roleUnit   = "unit"
)

// The annotations of Leases.
const (
	annotationUnit   = "rvinformer.dev/unit"   // the text of the unit
	annotationEpoch  = "rvinformer.dev/epoch"  // of the owner
	annotationWeight = "rvinformer.dev/weight" // what the unit costs
)

// selector finds all Leases of a fleet.
func selector(name string) string {
	return labels.Set{labelFleet: name}.String()
}

// memberName is the name of the Lease of a member.
func memberName(fleetName, identity string) string {
	return fleetName + "-member-" + digest(identity)
}

// unitName is the name of the Lease of a unit. Names of Leases cannot have all the characters of a
// unit.
func unitName(fleetName string, u fleet.Unit) string {
	return fleetName + "-unit-" + digest(u.String())
}

// unitText is the text of a unit as a Lease can have it.
func unitText(u fleet.Unit) string { return strings.ToValidUTF8(u.String(), "\uFFFD") }

// resourcesOf is the part of the text of a unit that its shards have in common: the cluster and the
// group.
func resourcesOf(text string) string {
	cluster, rest, _ := strings.Cut(text, "/")
	group, _, _ := strings.Cut(rest, "/")
	return cluster + "/" + group
}

// unitLabels are the labels of the Lease of a unit.
func unitLabels(fleetName string, u fleet.Unit) map[string]string {
	set := map[string]string{labelFleet: fleetName, labelRole: roleUnit}
	for label, value := range map[string]string{labelCluster: u.Cluster, labelGroup: u.Group} {
		if len(validation.IsValidLabelValue(value)) == 0 {
			set[label] = value
		}
	}
	return set
}

// planVersion is part of the digest of units, so that members with another rule of planning do not
// plan together.
const planVersion = "plan 1"

// unitsDigest is the same for members that plan together: they know the same units, and share them
// by the same rule.
func unitsDigest(units []fleet.Unit) string {
	texts := make([]string, 0, len(units)+1)
	texts = append(texts, planVersion)
	for _, u := range units {
		texts = append(texts, u.String())
	}
	return digest(strings.Join(texts, "\n"))
}

// digest is short enough for a name, and long enough that no two of a fleet are the same.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// baseOf is the identity that a replica was configured with, without what tells its processes
// apart.
func baseOf(identity string) string {
	if i := strings.LastIndexByte(identity, '_'); i >= 0 {
		return identity[:i]
	}
	return identity
}
