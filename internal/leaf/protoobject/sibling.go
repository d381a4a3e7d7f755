package protoobject

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// sibling has parts of the metadata that was decoded last. Objects next to each other in a list
// have many of them alike: the pods of one deployment have the same labels and the same owner. A
// nil sibling has none.
type sibling struct {
	labels, annotations textRun
	owner               lastOwner
	managers            [maxManagers]lastManager
}

// maxManagers bounds the entries of managed fields that are remembered.
const maxManagers = 8

// labelRun and annotationRun return where these maps are remembered, nil if they are not.
func (s *sibling) labelRun() *textRun {
	if s == nil {
		return nil
	}
	return &s.labels
}

func (s *sibling) annotationRun() *textRun {
	if s == nil {
		return nil
	}
	return &s.annotations
}

// lastOwner returns where the reference to an owner is remembered, nil if it is not.
func (s *sibling) lastOwner() *lastOwner {
	if s == nil {
		return nil
	}
	return &s.owner
}

// manager returns where an entry of managed fields is remembered, nil if it is not.
func (s *sibling) manager(index int) *lastManager {
	if s == nil || index >= maxManagers {
		return nil
	}
	return &s.managers[index]
}

// lastOwner is the reference to an owner that came last.
type lastOwner struct {
	message []byte
	made    metav1.OwnerReference
}

// copied copies the reference that came last, if the message is the same.
func (l *lastOwner) copied(m *metav1.OwnerReference, message []byte) bool {
	if l == nil || len(message) == 0 || string(message) != string(l.message) {
		return false
	}
	*m = l.made
	ownFlags(m)
	return true
}

// put remembers a reference.
func (l *lastOwner) put(m *metav1.OwnerReference, message []byte) {
	if l != nil && len(message) <= maxRun {
		l.message, l.made = append(l.message[:0], message...), *m
		ownFlags(&l.made)
	}
}

// ownFlags has a reference, which was copied, point to memory of its own.
func ownFlags(m *metav1.OwnerReference) {
	own := new([2]bool)
	if m.Controller != nil {
		own[0] = *m.Controller
		m.Controller = &own[0]
	}
	if m.BlockOwnerDeletion != nil {
		own[1] = *m.BlockOwnerDeletion
		m.BlockOwnerDeletion = &own[1]
	}
}

// lastManager is the entry of managed fields that came last at its index. Those of siblings differ
// in nothing but the time.
type lastManager struct {
	message      []byte                    // empty if none is remembered
	time, fields span                      // in the message
	made         metav1.ManagedFieldsEntry // without what it points to
}

// span is a part of a message.
type span struct{ from, to int }

// copied makes an entry of the one that came last, if the message differs in nothing but the time.
// The entry points to own.
func (l *lastManager) copied(m *metav1.ManagedFieldsEntry, own *manager, message []byte) bool {
	if l == nil || len(message) == 0 || len(message) != len(l.message) {
		return false
	}
	from, to := l.time.from, l.time.to
	if string(message[:from]) != string(l.message[:from]) || string(message[to:]) != string(l.message[to:]) ||
		!unmarshalTime(&own.at, message[from:to]) || !unmarshalFields(&own.fields, message[l.fields.from:l.fields.to]) {
		return false
	}
	*m = l.made
	m.Time, m.FieldsV1 = &own.at, &own.fields
	return true
}

// put remembers an entry, in which the time and the fields came once.
func (l *lastManager) put(m *metav1.ManagedFieldsEntry, message []byte, time, fields span) {
	if l != nil && len(message) <= maxRun {
		l.message, l.time, l.fields, l.made = append(l.message[:0], message...), time, fields, *m
		l.made.Time, l.made.FieldsV1 = nil, nil
	}
}
