package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/engine/listwatch"
	"github.com/rvinformer/informer/internal/engine/object"
	"github.com/rvinformer/informer/internal/leaf/keytable"
	"github.com/rvinformer/informer/internal/leaf/rv"
)

// ErrClusterReplaced says that a server is of another cluster than before: the UID of its
// namespace kube-system has changed.
var ErrClusterReplaced = errors.New("the server is of another cluster than before")

// Inquiry asks a server whether it still is the server that is known. It may be another one at
// the same address, or may have been restored from a backup.
type Inquiry struct {
	// Cluster is the UID of the namespace kube-system, empty if it is not known.
	Cluster string
	// ResourceVersion is one that the server had. It is empty if it is not known up to which one the
	// objects are known: the server is asked for its newest state then.
	ResourceVersion string
	// Objects returns some objects that the server had by then; nil if none are known.
	Objects func() []object.Known
	// ResourceOnly leaves the namespace kube-system out.
	ResourceOnly bool
	// VersionOnly asks for nothing but the resource version, and the resource first: it may have an
	// etcd, and versions, of its own.
	VersionOnly bool
	// Empty tells that the server had no objects by then.
	Empty bool
	// Over is the connection of the watch that the question is asked for, nil if it is not known.
	// See Body.
	Over *tls.ConnectionState
	// Period is when the objects were listed, 0 if that is not known. See Resource.Period.
	Period uint64
}

// Answer is the answer of a server to an Inquiry.
type Answer struct {
	// Cluster is the UID of the namespace kube-system, empty if the server did not say.
	Cluster string
	// HasVersion tells that the server has said that it has the resource version, and Itself that the
	// resource has. Older tells that the resource has answered with older data all the same.
	HasVersion, Itself, Older bool
	// Refused tells that the server has refused to look for known objects, one at a time.
	Refused bool
	// Identity is whether the server is the one that is known.
	Identity Identity
	// Expected and Found describe the two clusters if an object tells that they differ.
	Expected, Found string
	// Requests is how many requests were sent.
	Requests int
}

// Identity is whether a server is the one that is known. A later constant is a stronger doubt.
type Identity int

const (
	// Unsaid: nothing in the answer tells.
	Unsaid Identity = iota
	// Same: the namespace kube-system, or an object, has the known UID.
	Same
	// Doubtful: no known object could be found.
	Doubtful
	// Another: the namespace kube-system has another UID, or an object is not newer than the
	// known version, and is not known.
	Another
)

// Ask asks the server an Inquiry. An error of the kind listwatch.TooLarge says that the server
// does not have the resource version. Another error says that it should be asked again later.
//
// A kube-apiserver does not refuse a watch from a version that it will have in the future, as
// after a restore of its etcd from a backup. The watch shows nothing until the server has come
// to that version, and nothing before it.
//
// The namespace kube-system is asked for first, which costs little; a server that never had one
// is not asked for more. If something is left open, objects of the resource are asked for, one at
// a time: the namespace may be forbidden, and the resource may have an etcd, and versions, of its
// own, as events often do. The server waits some seconds for data that is not older. If the
// namespace says that the data is older, and the resource says nothing, that counts.
//
// What the informers of a server ask at about the same time is asked once: see acquaintance.
func (r *Resource) Ask(ctx context.Context, q Inquiry) (a Answer, err error) {
	if q.VersionOnly {
		err = r.askVersion(ctx, q, &a)
		return a, err
	}
	if q.Cluster != "" || q.Period == 0 || q.ResourceOnly {
		return r.ask(ctx, q)
	}
	k := r.server.acquaintance
	cluster, mine := k.clusterOf(ctx, q.Period, func() bool { return q.Objects != nil && len(q.Objects()) > 0 })
	if mine == nil {
		q.Cluster = cluster
		return r.ask(ctx, q)
	}
	err = errUnanswered // if a transport of the caller's ends the goroutine
	defer func() {
		found := ""
		if a.Identity == Same {
			found = a.Cluster
		}
		k.found(q.Period, mine, found, err)
	}()
	return r.ask(ctx, q)
}

// ask asks what others have not asked.
func (r *Resource) ask(ctx context.Context, q Inquiry) (Answer, error) {
	var a Answer
	var older error
	if !q.ResourceOnly {
		err := r.askCluster(ctx, q, &a)
		var status apierrors.APIStatus
		switch {
		case a.HasVersion && (a.Identity != Unsaid || q.Objects == nil || hasNone(err) && q.Cluster == ""):
			return a, nil
		case err == nil:
		case listwatch.Classify(err) == listwatch.TooLarge:
			older = err
		case !errors.As(err, &status) && !errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
			return a, err
		}
	}
	err := r.askResource(ctx, q, &a)
	if err != nil && older != nil && listwatch.Classify(err) != listwatch.TooLarge {
		err = fmt.Errorf("%w; and of the resource: %v", older, err)
	}
	return a, err
}

// askVersion asks whether the server has the resource version. An answer without one, such as that of a
// proxy, says nothing.
func (r *Resource) askVersion(ctx context.Context, q Inquiry, a *Answer) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a.Requests++
	_, at, err := r.list(limited, "", q.ResourceVersion)
	if err == nil {
		order := rv.Compare(at, q.ResourceVersion)
		a.Itself, a.Older = at == q.ResourceVersion || order == rv.Newer, order == rv.Older
		a.HasVersion = a.Itself
	}
	if isRefusal(err) {
		err = nil
	}
	if a.Itself || q.ResourceOnly || listwatch.Classify(err) == listwatch.TooLarge || ctx.Err() != nil {
		return err
	}
	if clusterErr := r.askCluster(ctx, q, a); !isRefusal(clusterErr) {
		err = clusterErr
	}
	return err
}

// askCluster asks for the namespace kube-system.
func (r *Resource) askCluster(ctx context.Context, q Inquiry, a *Answer) error {
	versioned, version := r.resource.Resource != "events", ""
	if versioned {
		version = q.ResourceVersion
	}
	uid, err := r.server.acquaintance.askCluster(ctx, version, q.Over, func(e *exchange) (string, error) {
		a.Requests++
		request := r.kubeSystem()
		if versioned {
			request.Param("resourceVersion", version)
		}
		return namespaceUID(withExchange(ctx, e), request)
	})
	a.Cluster, a.HasVersion = uid, versioned && (err == nil || hasNone(err))
	switch {
	case uid == "" || q.Cluster == "":
	case uid == q.Cluster:
		a.Identity = Same
	default:
		a.Identity = Another
	}
	return err
}

// askResource asks for known objects until one is found, or for any object if none are known.
// A refusal counts as no answer.
func (r *Resource) askResource(ctx context.Context, q Inquiry, a *Answer) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if q.Objects != nil && a.Identity == Unsaid {
		for _, o := range q.Objects() {
			a.Requests++
			found, err := r.find(ctx, o.Key, q.ResourceVersion)
			if isRefusal(err) {
				a.Refused = true
				break
			}
			if err != nil {
				return err
			}
			if !found.Exists && found.At == "" || rv.Compare(found.At, q.ResourceVersion) == rv.Older {
				break // a proxy may have answered, or a cache that is behind
			}
			a.HasVersion = true
			if isSame(o, found.Version, found.Exists) {
				a.Identity = Same
				return nil
			}
			a.doubt(o, found.Version, found.Exists && q.wouldKnow(o, found.Version))
		}
	}
	if a.HasVersion {
		return nil
	}
	a.Requests++
	first, _, err := r.list(ctx, "", q.ResourceVersion)
	a.HasVersion = err == nil
	if q.Empty && first.Name != "" && rv.NotNewer(first.ResourceVersion, q.ResourceVersion) {
		a.Identity, a.Expected = Another, "one without objects in version "+q.ResourceVersion
		a.Found = clusterOf(cache.NewObjectName(first.Namespace, first.Name).String(), first.version())
	}
	if isRefusal(err) {
		return nil
	}
	return err
}

// wouldKnow reports whether an object that stands in the place of the known object o is old enough
// that we would know it, if this were the server that we knew.
func (q *Inquiry) wouldKnow(o object.Known, now keytable.Version) bool {
	if q.ResourceVersion != "" {
		return rv.NotNewer(now.ResourceVersion, q.ResourceVersion)
	}
	// At its version, the known object had the name. So another object of that name was not there.
	return o.Version.UID != "" && now.UID != "" && rv.NotNewer(now.ResourceVersion, o.Version.ResourceVersion)
}

// isSame reports whether now is the known object o, as far as the server has found one.
func isSame(o object.Known, now keytable.Version, found bool) bool {
	switch {
	case !found:
		return false
	case o.Version.UID != "" && now.UID != "":
		return o.Version.UID == now.UID
	default:
		return o.Version.ResourceVersion == now.ResourceVersion
	}
}

// doubt notes that the server has another object of a name, or none. It may have been created
// again since. But an old object, one that is not newer than the resource version of the Inquiry,
// would be known.
func (a *Answer) doubt(o object.Known, now keytable.Version, old bool) {
	a.Identity = max(a.Identity, Doubtful)
	if old {
		a.Identity = Another
		a.Expected, a.Found = clusterOf(o.Key, o.Version), clusterOf(o.Key, now)
	}
}

// clusterOf describes a cluster by an object.
func clusterOf(key string, v keytable.Version) string {
	return fmt.Sprintf("that of %s with UID %s in version %s", key, v.UID, v.ResourceVersion)
}
