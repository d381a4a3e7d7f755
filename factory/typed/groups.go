package typed

import (
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
)

// The typed accessors of all groups of client-go 0.36, client-go's own:
// f.Apps().V1().Deployments() has an Informer and a Lister. Those of later groups are in
// latergroups.go.

// Admissionregistration has the informers of k8s.io/api/admissionregistration.
func (f *Factory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(accessors{f}, f.namespace, f.requests)
}

// Internal has the informers of k8s.io/api/apiserverinternal.
func (f *Factory) Internal() apiserverinternal.Interface {
	return apiserverinternal.New(accessors{f}, f.namespace, f.requests)
}

// Apps has the informers of k8s.io/api/apps.
func (f *Factory) Apps() apps.Interface {
	return apps.New(accessors{f}, f.namespace, f.requests)
}

// Autoscaling has the informers of k8s.io/api/autoscaling.
func (f *Factory) Autoscaling() autoscaling.Interface {
	return autoscaling.New(accessors{f}, f.namespace, f.requests)
}

// Batch has the informers of k8s.io/api/batch.
func (f *Factory) Batch() batch.Interface {
	return batch.New(accessors{f}, f.namespace, f.requests)
}

// Certificates has the informers of k8s.io/api/certificates.
func (f *Factory) Certificates() certificates.Interface {
	return certificates.New(accessors{f}, f.namespace, f.requests)
}

// Coordination has the informers of k8s.io/api/coordination.
func (f *Factory) Coordination() coordination.Interface {
	return coordination.New(accessors{f}, f.namespace, f.requests)
}

// Core has the informers of k8s.io/api/core.
func (f *Factory) Core() core.Interface {
	return core.New(accessors{f}, f.namespace, f.requests)
}

// Discovery has the informers of k8s.io/api/discovery.
func (f *Factory) Discovery() discovery.Interface {
	return discovery.New(accessors{f}, f.namespace, f.requests)
}

// Events has the informers of k8s.io/api/events.
func (f *Factory) Events() events.Interface {
	return events.New(accessors{f}, f.namespace, f.requests)
}

// Extensions has the informers of k8s.io/api/extensions.
func (f *Factory) Extensions() extensions.Interface {
	return extensions.New(accessors{f}, f.namespace, f.requests)
}

// Flowcontrol has the informers of k8s.io/api/flowcontrol.
func (f *Factory) Flowcontrol() flowcontrol.Interface {
	return flowcontrol.New(accessors{f}, f.namespace, f.requests)
}

// Networking has the informers of k8s.io/api/networking.
func (f *Factory) Networking() networking.Interface {
	return networking.New(accessors{f}, f.namespace, f.requests)
}

// Node has the informers of k8s.io/api/node.
func (f *Factory) Node() node.Interface {
	return node.New(accessors{f}, f.namespace, f.requests)
}

// Policy has the informers of k8s.io/api/policy.
func (f *Factory) Policy() policy.Interface {
	return policy.New(accessors{f}, f.namespace, f.requests)
}

// Rbac has the informers of k8s.io/api/rbac.
func (f *Factory) Rbac() rbac.Interface {
	return rbac.New(accessors{f}, f.namespace, f.requests)
}

// Resource has the informers of k8s.io/api/resource.
func (f *Factory) Resource() resource.Interface {
	return resource.New(accessors{f}, f.namespace, f.requests)
}

// Scheduling has the informers of k8s.io/api/scheduling.
func (f *Factory) Scheduling() scheduling.Interface {
	return scheduling.New(accessors{f}, f.namespace, f.requests)
}

// Storage has the informers of k8s.io/api/storage.
func (f *Factory) Storage() storage.Interface {
	return storage.New(accessors{f}, f.namespace, f.requests)
}

// Storagemigration has the informers of k8s.io/api/storagemigration.
func (f *Factory) Storagemigration() storagemigration.Interface {
	return storagemigration.New(accessors{f}, f.namespace, f.requests)
}
