package typed

import "k8s.io/apimachinery/pkg/runtime/schema"

// clusterScoped are the built-in resources without namespaces, in any version: a factory
// of one namespace follows all of their objects.
var clusterScoped = map[schema.GroupResource]bool{
	{Group: "", Resource: "componentstatuses"}:                                             true,
	{Group: "", Resource: "namespaces"}:                                                    true,
	{Group: "", Resource: "nodes"}:                                                         true,
	{Group: "", Resource: "persistentvolumes"}:                                             true,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}:         true,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"}:   true,
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}:     true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}:       true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}: true,
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}:   true,
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:                 true,
	{Group: "certificates.k8s.io", Resource: "clustertrustbundles"}:                        true,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:                       true,
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}:       true,
	{Group: "internal.apiserver.k8s.io", Resource: "storageversions"}:                      true,
	{Group: "networking.k8s.io", Resource: "ingressclasses"}:                               true,
	{Group: "networking.k8s.io", Resource: "ipaddresses"}:                                  true,
	{Group: "networking.k8s.io", Resource: "servicecidrs"}:                                 true,
	{Group: "node.k8s.io", Resource: "runtimeclasses"}:                                     true,
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}:                  true,
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}:                         true,
	{Group: "resource.k8s.io", Resource: "deviceclasses"}:                                  true,
	{Group: "resource.k8s.io", Resource: "devicetaintrules"}:                               true,
	{Group: "resource.k8s.io", Resource: "resourcepoolstatusrequests"}:                     true,
	{Group: "resource.k8s.io", Resource: "resourceslices"}:                                 true,
	{Group: "scheduling.k8s.io", Resource: "priorityclasses"}:                              true,
	{Group: "storage.k8s.io", Resource: "csidrivers"}:                                      true,
	{Group: "storage.k8s.io", Resource: "csinodes"}:                                        true,
	{Group: "storage.k8s.io", Resource: "storageclasses"}:                                  true,
	{Group: "storage.k8s.io", Resource: "volumeattachments"}:                               true,
	{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}:                         true,
	{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}:               true,
}
