package samples

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ReleaseKind and ReleaseResource are those of the custom resource.
var (
	ReleaseKind     = schema.GroupVersionKind{Group: "delivery.example.com", Version: "v1", Kind: "Release"}
	ReleaseResource = ReleaseKind.GroupVersion().WithResource("releases")
)

// Release returns custom resource i after a number of updates. It has 2 KB of JSON on average.
//
// It says which chart a controller shall install, with which values, and what became of it. Those
// of one owner have the same chart; their values, checksums, times and messages differ. The caller
// owns the release: it shares nothing with others.
func (c Cluster) Release(i, revision int) *unstructured.Unstructured {
	owner := c.ownerOf(i)
	common := c.random(deploymentTopic, owner.index)
	r := c.random(releaseTopic, i)
	chart := firstWords[owner.index%OwnersPerNamespace] + "-" + common.of(secondWords)
	team := fmt.Sprintf("team-%02d", common.IntN(Teams))
	ownerUID, ownerName := common.uid(), chart+"-"+common.text(safe, 6)
	chartVersion := fmt.Sprintf("%d.%d.%d", common.IntN(9), common.IntN(40), common.IntN(20))
	name := ownerName + "-" + suffix(common.IntN(1<<20), owner.ordinal)
	created := epoch.Add(time.Duration(r.IntN(90*24*3600)) * time.Second)
	values := map[string]any{}
	for _, variable := range variables(common, 4) {
		values[variable.Name] = variable.Value
	}
	for _, setting := range []string{"host", "database"} {
		values[setting] = r.text("abcdefghijklmnopqrstuvwxyz", 8) + "." + team + ".example.com"
	}
	values["replicas"] = int64(1 + r.IntN(9))

	at := created.Add(time.Duration(5+r.IntN(300)) * time.Second)
	checksum, digest, installed := r.hex(20), r.hex(32), chartVersion
	for n := 1; n <= revision; n++ {
		u := c.random(updateTopic, i<<8+n)
		at = at.Add(time.Duration(600+u.IntN(7*24*3600)) * time.Second)
		digest = u.hex(32)
	}
	stamp := at.Format(time.RFC3339)
	condition := func(kind, reason, message string) any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": stamp}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": ReleaseKind.GroupVersion().String(),
		"kind":       ReleaseKind.Kind,
		"metadata": map[string]any{
			"name": name, "namespace": Namespace(i), "uid": string(r.uid()), "resourceVersion": version(i, revision), "generation": int64(1),
			"creationTimestamp": created.Format(time.RFC3339),
			"labels":            map[string]any{"app.kubernetes.io/name": chart, "app.kubernetes.io/managed-by": "delivery", "team": team},
			"finalizers":        []any{"delivery.example.com/release"},
			"ownerReferences": []any{map[string]any{"apiVersion": "delivery.example.com/v1", "kind": "Fleet", "name": ownerName, "uid": string(ownerUID),
				"controller": true, "blockOwnerDeletion": true}},
			"managedFields": []any{map[string]any{
				"manager": "delivery-controller", "operation": "Update", "apiVersion": "delivery.example.com/v1", "time": stamp, "fieldsType": "FieldsV1", "subresource": "status",
				"fieldsV1": map[string]any{"f:status": map[string]any{"f:conditions": map[string]any{}, "f:history": map[string]any{}, "f:lastAppliedRevision": map[string]any{}}},
			}},
		},
		"spec": map[string]any{
			"interval": "5m0s", "targetNamespace": Namespace(i), "serviceAccountName": chart,
			"chart":  map[string]any{"name": chart, "version": chartVersion, "sourceRef": map[string]any{"kind": "Repository", "name": team, "namespace": "delivery-system"}},
			"values": values,
		},
		"status": map[string]any{
			"observedGeneration": int64(1), "lastAppliedRevision": installed, "lastAttemptedValuesChecksum": checksum,
			"conditions": []any{
				condition("Ready", "InstallSucceeded", fmt.Sprintf("Install of %s.v%d with chart %s@%s succeeded", name, revision+1, chart, chartVersion)),
				condition("Released", "InstallSucceeded", fmt.Sprintf("Release %s/%s is deployed", Namespace(i), name)),
			},
			"history": []any{map[string]any{"digest": "sha256:" + digest, "version": int64(revision + 1), "firstDeployed": created.Format(time.RFC3339), "lastDeployed": stamp}},
		},
	}}
}
