package informertest

import "iter"

// Dialects yields the dialects of this package by name, in the order of their names.
func Dialects() iter.Seq2[string, Dialect] {
	return func(yield func(string, Dialect) bool) {
		for _, d := range []struct {
			name  string
			speak func() Dialect
		}{
			{"antrea", Antrea},
			{"computed", ComputedVersions},
			{"kine", KineZeroBookmarks},
			{"metrics", MetricsServer},
			{"openshift", OpenShiftProjects},
			{"openshift-ignoring", OpenShiftProjectsIgnoring},
			{"own-store", OwnStore},
			{"polled", Polled},
			{"porch", Porch},
			{"replaying", Replaying},
			{"search", SearchCache},
			{"sorted", SortingProxy},
			{"unmarked", WithoutBookmarks},
		} {
			if !yield(d.name, d.speak()) {
				return
			}
		}
	}
}

// Antrea is the controller of Antrea, whose store is memory: neither lists nor objects have versions,
// each watch shows all objects first, and the mark of a watch-list has a counter of the server's own.
// It knows no other bookmarks, and no selectors. See antrea-io/antrea#8123, #8124.
func Antrea() Dialect {
	return Dialect{Lists: VersionLeftOut, Marks: VersionCounted, NoBookmarks: true, NoObjectVersions: true, Resume: ResumeReplays}
}

// Porch is the server of porch: its lists have no version, the mark of a watch-list has that of the
// newest object or "0", and no watch can be resumed. Its versions have no order, which
// [Options].OpaqueVersions adds. See kptdev/porch#1101, #1102.
func Porch() Dialect {
	return Dialect{Lists: VersionLeftOut, Marks: VersionOfItems, NoBookmarks: true, Resume: ResumeExpired}
}

// OpenShiftProjects is the server of OpenShift's projects as it was changed in 2026: its lists have
// no version, a watch-list is a marked bookmark without version and objects, each watch begins now,
// and a deletion names its object and no more. See openshift/openshift-apiserver#661, #672,
// openshift/api#2064.
func OpenShiftProjects() Dialect {
	return Dialect{
		Lists: VersionLeftOut, Marks: VersionLeftOut, NoBookmarks: true,
		WatchLists: WatchListEmpty, Resume: ResumeFromNow, BareDeletions: true,
	}
}

// OpenShiftProjectsIgnoring is [OpenShiftProjects] before that change: it does not know watch-lists,
// and answers them with a watch from now. See openshift/origin#6828, #8755.
func OpenShiftProjectsIgnoring() Dialect {
	d := OpenShiftProjects()
	d.WatchLists = WatchListIgnored
	return d
}

// Replaying is a server that accepts a version to resume from, shows every living object as ADDED in
// its old version, and never tells what was deleted meanwhile. See kptdev/porch#1101,
// mckinsey/agents-at-scale-ark#2680, cozystack/cozystack#1860.
func Replaying() Dialect {
	return Dialect{NoBookmarks: true, WatchLists: WatchListIgnored, Resume: ResumeReplays}
}

// ComputedVersions is a server whose lists have the version of their newest item: it falls when that
// is deleted. See grafana/grafana#83849, cozystack/cozystack#1860.
func ComputedVersions() Dialect {
	return Dialect{Lists: VersionOfItems, NoBookmarks: true, WatchLists: WatchListIgnored}
}

// OwnStore is an aggregated server over an etcd of its own, which can be restored without that of the
// cluster.
func OwnStore() Dialect { return Dialect{OwnStore: true} }

// KineZeroBookmarks is kine before 0.14.9, which k3s keeps its objects in: bookmarks in the middle of
// a watch have version "0". See k3s-io/k3s#13314.
func KineZeroBookmarks() Dialect { return Dialect{Bookmarks: VersionZero} }

// WithoutBookmarks is a server up to 1.26, or a gateway that filters bookmarks: watch-lists are unknown,
// and no bookmark comes at all. See gravitational/teleport#64188, derailed/k9s#4044.
func WithoutBookmarks() Dialect { return Dialect{NoBookmarks: true, WatchLists: WatchListIgnored} }

// Polled is a server that has lists and no watches. See kptdev/porch#55, rancher/rancher#46768.
func Polled() Dialect { return Dialect{RefuseWatches: 405} }

// MetricsServer is metrics-server: it has lists and no watches, and its objects have neither a
// version nor a UID. See kubernetes-sigs/metrics-server.
func MetricsServer() Dialect {
	return Dialect{Lists: VersionLeftOut, NoObjectVersions: true, NoUIDs: true, RefuseWatches: 405}
}

// SearchCache is a search over several clusters: a list is those of the clusters one after another,
// so that objects of one name meet in it. See karmada-io/karmada#2058.
func SearchCache() Dialect {
	return Dialect{WatchLists: WatchListIgnored, TwinKeys: true, NoBookmarks: true}
}

// SortingProxy is a proxy that decodes what it passes on and encodes it again, and does not say what
// it is. See kubernetes/kubernetes#84692.
func SortingProxy() Dialect { return Dialect{SortedKeys: true, NoContentType: true} }
