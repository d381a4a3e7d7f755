package samples

import (
	"fmt"
	"iter"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A group of pods runs on nodes of its own: 25 on each, on average.
const (
	podsPerGroup  = 5000
	nodesPerGroup = 200
)

// Pod returns pod i after a number of updates, as in a list: without its kind. It has 3.4 KB of
// protobuf on average.
//
// Its managedFields are abridged: the kubelet's entry lists the fields of the status, the
// controller manager's does not list the variables. With all of them a pod would be twice as large,
// and most of it would be alike.
//
// The caller owns the pod: it shares nothing with others.
func (c Cluster) Pod(i, revision int) *corev1.Pod {
	owner := c.ownerOf(i)
	return c.pod(c.deployment(owner.index), owner.ordinal, i, revision)
}

// Pods returns pods one after the other. Pods of one deployment share their containers and must not
// be changed.
func (c Cluster) Pods(first, n, revision int) iter.Seq2[int, *corev1.Pod] {
	return func(yield func(int, *corev1.Pod) bool) {
		var d *deployment
		index := -1
		for i := first; i < first+n; i++ {
			owner := c.ownerOf(i)
			if owner.index != index {
				d, index = c.deployment(owner.index), owner.index
			}
			if !yield(i, c.pod(d, owner.ordinal, i, revision)) {
				return
			}
		}
	}
}

func (c Cluster) pod(d *deployment, ordinal, i, revision int) *corev1.Pod {
	r := c.random(podTopic, i)
	created := metav1.NewTime(d.created.Add(time.Duration(r.IntN(7200)) * time.Second))
	started := metav1.NewTime(created.Add(time.Duration(2+r.IntN(60)) * time.Second))
	node := i/podsPerGroup*nodesPerGroup + r.IntN(nodesPerGroup)
	replicaSet := d.name + "-" + d.hash
	yes, seconds, grace, mode := true, int64(300), int64(30), int32(0o644)
	tokenSeconds := int64(3607)
	priority, preemption := int32(0), corev1.PreemptLowerPriority
	volumes := []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: d.name}, DefaultMode: &mode}}},
		{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &tokenSeconds, Path: "token"}},
		}}}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: replicaSet + "-" + suffix(d.salt, ordinal), GenerateName: replicaSet + "-", Namespace: Namespace(i),
			UID: r.uid(), CreationTimestamp: created,
			Labels: map[string]string{
				"app.kubernetes.io/name": d.name, "pod-template-hash": d.hash, "team": d.team, "tier": d.tier,
			},
			Annotations: map[string]string{"prometheus.io/scrape": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: replicaSet, UID: d.uid,
				Controller: &yes, BlockOwnerDeletion: &yes}},
		},
		Spec: corev1.PodSpec{
			Volumes: volumes, Containers: d.containers,
			RestartPolicy: "Always", TerminationGracePeriodSeconds: &grace, DNSPolicy: "ClusterFirst", EnableServiceLinks: &yes, ServiceAccountName: d.name,
			NodeName: fmt.Sprintf("ip-%s", strings.ReplaceAll(hostIP(node), ".", "-")), SchedulerName: "default-scheduler", SecurityContext: &corev1.PodSecurityContext{},
			Priority: &priority, PreemptionPolicy: &preemption,
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds},
			},
		},
		Status: corev1.PodStatus{
			Phase: "Running", HostIP: hostIP(node), StartTime: &created, QOSClass: "Burstable",
			PodIP: fmt.Sprintf("100.%d.%d.%d", 64+r.IntN(64), r.IntN(256), 1+r.IntN(254)),
		},
	}
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	condition := func(t corev1.PodConditionType, at metav1.Time) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: at}
	}
	pod.Status.Conditions = []corev1.PodCondition{
		condition("Initialized", created), condition("Ready", started), condition("ContainersReady", started), condition("PodScheduled", created),
	}
	for k, container := range d.containers {
		name, _, _ := strings.Cut(container.Image, ":")
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Ready: true, Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
			Image: container.Image, ImageID: name + "@sha256:" + d.digests[k], ContainerID: "containerd://" + r.hex(32),
		})
	}
	last := started
	for n := 1; n <= revision; n++ {
		last = c.update(pod, i, n)
	}
	pod.ResourceVersion = version(i, revision)
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &created, FieldsType: "FieldsV1", FieldsV1: fieldsV1(createdFields)},
		{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &last, FieldsType: "FieldsV1", FieldsV1: fieldsV1(statusFields), Subresource: "status"},
	}
	return pod
}

func fieldsV1(text string) *metav1.FieldsV1 {
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes([]byte(text))
	return fields
}

// update makes of a pod what it is after its n-th update, and returns when that was: a container of
// it was restarted, or, every other time, it was not ready and is again.
func (c Cluster) update(pod *corev1.Pod, i, n int) metav1.Time {
	r := c.random(updateTopic, i<<8+n)
	status := &pod.Status
	at := metav1.NewTime(status.Conditions[1].LastTransitionTime.Add(time.Duration(600+r.IntN(7*24*3600)) * time.Second))
	if n%2 == 1 {
		container := &status.ContainerStatuses[r.IntN(len(status.ContainerStatuses))]
		container.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: int32([]int{1, 2, 137, 143}[r.IntN(4)]), Reason: "Error", StartedAt: container.State.Running.StartedAt,
			FinishedAt: metav1.NewTime(at.Add(-time.Duration(1+r.IntN(20)) * time.Second)), ContainerID: container.ContainerID,
		}}
		container.RestartCount++
		container.ContainerID = "containerd://" + r.hex(32)
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
	}
	status.Conditions[1].LastTransitionTime, status.Conditions[2].LastTransitionTime = at, at
	return at
}

func hostIP(node int) string {
	return fmt.Sprintf("10.%d.%d.%d", node>>14&255, node>>6&255, 4+node&63*3)
}

// What two managers say they own.
const (
	createdFields = `{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:pod-template-hash":{},"f:team":{},"f:tier":{}},"f:ownerReferences":{".":{}}},"f:spec":{"f:containers":{},"f:restartPolicy":{}}}`
	statusFields  = `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{},"f:startTime":{}}}`
)
