package main

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// leaseBytes is the size of an event about a Lease on the wire, in protobuf: one as package shards
// writes it, and as the API server adds to it.
func leaseBytes() int {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease := coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "mirror-member-0123456789abcdef0123", Namespace: "mirror",
			UID: types.UID("01234567-89ab-cdef-0123-456789abcdef"), ResourceVersion: "1234567890", CreationTimestamp: metav1.NewTime(at),
			Labels:      map[string]string{"rvinformer.dev/fleet": "mirror", "rvinformer.dev/role": "member"},
			Annotations: map[string]string{"rvinformer.dev/units": "0123456789abcdef0123"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "mirror", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "coordination.k8s.io/v1", Time: ptr.To(metav1.NewTime(at)), FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:rvinformer.dev/units":{}},"f:labels":{".":{},"f:rvinformer.dev/fleet":{},"f:rvinformer.dev/role":{}}},"f:spec":{"f:acquireTime":{},"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:leaseTransitions":{},"f:renewTime":{}}}`),
			}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("mirror-123_0123456789abcdef"), LeaseDurationSeconds: ptr.To[int32](15), LeaseTransitions: ptr.To[int32](7),
			AcquireTime: ptr.To(metav1.NewMicroTime(at)), RenewTime: ptr.To(metav1.NewMicroTime(at)),
		},
	}
	return lease.Size() + 60 // the frame, the envelope, and the type of the event
}
