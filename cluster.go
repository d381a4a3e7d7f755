package informer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer/internal/keytable"
	"github.com/rvinformer/informer/internal/listwatch"
	"github.com/rvinformer/informer/internal/rv"
)

// ErrClusterReplaced says that a server is of another cluster than before: the UID of its
// namespace kube-system is another one. An informer lists the new cluster, and delivers
// all that differs.
var ErrClusterReplaced = errors.New("the server is of another cluster than before")

// clusterPatience is how long a server may take to say which cluster it is of.
const clusterPatience = 10 * time.Second

// inquiry asks a server whether it still is the one that is known.
type inquiry struct {
	// cluster is the UID of the namespace kube-system, empty if that is not known.
	cluster string
	// resourceVersion is one that the server had.
	resourceVersion string
	// objects returns some objects that the server had by then; nil if none are known.
	objects func() []knownObject
	// resourceOnly leaves the namespace kube-system out.
	resourceOnly bool
	// empty tells that the server had no objects by then.
	empty bool
}

// knownObject is an object that a server had.
type knownObject struct {
	key     string
	version keytable.Version
}

// answer is what a server says to an inquiry.
type answer struct {
	// cluster is the UID of the namespace kube-system, empty if the server did not say.
	cluster string
	// hasVersion tells that the server has said that it has the resource version.
	hasVersion bool
	identity   identity
	// expected and found say what tells that it is another cluster.
	expected, found string
}

// identity is whether a server is the one that is known.
type identity int

const (
	// unsaid: nothing that the server has said tells.
	unsaid identity = iota
	// same: the namespace kube-system, or an object, has the known UID.
	same
	// doubtful: no known object could be found.
	doubtful
	// another: the namespace kube-system has another UID, or an object is not newer than the
	// known version, and is not known.
	another
)

// recognizer is a ListerWatcher that can tell which server it reads.
type recognizer interface {
	// recognize asks the server. An error of the kind listwatch.TooLarge says that it does
	// not have the resource version, another one that it should be asked again later.
	recognize(ctx context.Context, q inquiry) (answer, error)
}

// recognize returns what lw, a ListerWatcher, says to an inquiry. One that is not of this
// package says nothing.
//
// A kube-apiserver does not refuse a watch from a version that it will have in the
// future, as after a restore of its etcd from a backup: it says nothing until it has
// come to that version, and nothing of what it was before.
func recognize(ctx context.Context, lw interface{}, q inquiry) (answer, error) {
	if r, ok := lw.(recognizer); ok {
		return r.recognize(ctx, q)
	}
	return answer{}, nil
}

func (f filtered) recognize(ctx context.Context, q inquiry) (answer, error) {
	return recognize(ctx, f.lw, q)
}

// recognize asks for the namespace kube-system, which costs little. A server that never had one
// is not asked for more. Where something is left open, it asks for objects of the resource, one at a time: the namespace may be
// forbidden, and the resource may have an etcd, and versions, of its own, as events often
// do. The server waits some seconds for data that is not older. If the namespace says that
// the data is older, and the resource says nothing, that counts.
func (lw resourceListerWatcher) recognize(ctx context.Context, q inquiry) (answer, error) {
	var a answer
	var older error
	if !q.resourceOnly {
		err := lw.askCluster(ctx, q, &a)
		var status apierrors.APIStatus
		switch {
		case a.hasVersion && (a.identity != unsaid || q.objects == nil || hasNone(err) && q.cluster == ""):
			return a, nil
		case err == nil:
		case listwatch.Classify(err) == listwatch.TooLarge:
			older = err
		case !errors.As(err, &status) && !errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
			return a, err
		}
	}
	err := lw.askResource(ctx, q, &a)
	if err != nil && older != nil && listwatch.Classify(err) != listwatch.TooLarge {
		err = fmt.Errorf("%w; and of the resource: %v", older, err)
	}
	return a, err
}

// askCluster asks for the namespace kube-system.
func (lw resourceListerWatcher) askCluster(ctx context.Context, q inquiry, a *answer) error {
	request, versioned := lw.kubeSystem(), lw.resource.Resource != "events"
	if versioned {
		request.Param("resourceVersion", q.resourceVersion)
	}
	uid, err := namespaceUID(ctx, request)
	a.cluster, a.hasVersion = uid, versioned && (err == nil || hasNone(err))
	switch {
	case uid == "" || q.cluster == "":
	case uid == q.cluster:
		a.identity = same
	default:
		a.identity = another
	}
	return err
}

// askResource asks for known objects until one is found, or, where none are known, for any.
// A server that refuses that says nothing.
func (lw resourceListerWatcher) askResource(ctx context.Context, q inquiry, a *answer) error {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	if q.objects != nil && a.identity == unsaid {
		for _, o := range q.objects() {
			now, found, err := lw.find(ctx, o.key, q.resourceVersion)
			if isRefusal(err) {
				break
			}
			if err != nil {
				return err
			}
			a.hasVersion = true
			if o.isSame(now, found) {
				a.identity = same
				return nil
			}
			a.doubt(o, now, found && rv.NotNewer(now.ResourceVersion, q.resourceVersion))
		}
	}
	if a.hasVersion {
		return nil
	}
	first, err := lw.list(ctx, "", q.resourceVersion)
	a.hasVersion = err == nil
	if q.empty && first.Name != "" && rv.NotNewer(first.ResourceVersion, q.resourceVersion) {
		a.identity, a.expected = another, "one without objects in version "+q.resourceVersion
		a.found = clusterOf(cache.NewObjectName(first.Namespace, first.Name).String(), first.version())
	}
	if isRefusal(err) {
		return nil
	}
	return err
}

// isSame reports whether the server still has the object.
func (o knownObject) isSame(now keytable.Version, found bool) bool {
	switch {
	case !found:
		return false
	case o.version.UID != "" && now.UID != "":
		return o.version.UID == now.UID
	default:
		return o.version.ResourceVersion == now.ResourceVersion
	}
}

// doubt notes that the server has another object of a name, or none. It may have been created
// again since; but of what is not newer than the resource version of the inquiry, all is known.
func (a *answer) doubt(o knownObject, now keytable.Version, old bool) {
	a.identity = max(a.identity, doubtful)
	if old {
		a.identity = another
		a.expected, a.found = clusterOf(o.key, o.version), clusterOf(o.key, now)
	}
}

// clusterOf describes a cluster by an object.
func clusterOf(key string, v keytable.Version) string {
	return fmt.Sprintf("that of %s with UID %s in version %s", key, v.UID, v.ResourceVersion)
}

// find asks for the version of an object, in data not older than a resource version.
func (lw resourceListerWatcher) find(ctx context.Context, key, resourceVersion string) (v keytable.Version, found bool, err error) {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		return v, false, nil // nothing of that name can be there
	}
	selector := fields.Set{"metadata.name": name.Name}
	if name.Namespace != "" {
		selector["metadata.namespace"] = name.Namespace
	}
	listed, err := lw.list(ctx, selector.AsSelector().String(), resourceVersion)
	if err != nil || listed.Name != name.Name || listed.Namespace != name.Namespace {
		return v, false, err
	}
	return listed.version(), true, nil
}

// list asks for one object of the resource that a selector selects, or else those of the
// ListerWatcher, in data not older than a resource version. The metadata is empty where there
// is none.
func (lw resourceListerWatcher) list(ctx context.Context, fieldSelector, resourceVersion string) (first smallMeta, err error) {
	request := lw.get().AbsPath(lw.path()...).
		SetHeader("Accept", metadataListOnly).
		Param("limit", "1").
		MaxRetries(0) // the caller asks again
	if fieldSelector != "" {
		request.Param("fieldSelector", fieldSelector)
	} else {
		own := selected(tweak(metav1.ListOptions{}, lw.tweaks...))
		request.Param("labelSelector", own.LabelSelector).Param("fieldSelector", own.FieldSelector)
	}
	if resourceVersion != "" {
		request.Param("resourceVersion", resourceVersion).
			Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	list, err := readSmall[struct {
		Items []struct{ Metadata smallMeta }
	}](ctx, request)
	if err != nil || len(list.Items) == 0 {
		return first, err
	}
	return list.Items[0].Metadata, nil
}

// smallMeta is what an inquiry needs of an object's metadata.
type smallMeta struct{ Namespace, Name, UID, ResourceVersion string }

func (m smallMeta) version() keytable.Version {
	return keytable.Version{ResourceVersion: m.ResourceVersion, UID: types.UID(m.UID)}
}

// cluster asks the server for the UID of the namespace kube-system. It is empty where
// the server has none, or none for us. An error is one that may be over later.
func (lw resourceListerWatcher) cluster(ctx context.Context) (string, error) {
	uid, err := namespaceUID(ctx, lw.kubeSystem())
	if isRefusal(err) {
		return "", nil
	}
	return uid, err
}

// responds reports whether the server answers a list of the resource.
func (lw resourceListerWatcher) responds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	const any = "1" // every state is newer, and unlike for "0", one object stays one
	_, err := lw.list(ctx, "", any)
	return err == nil
}

const (
	// metadataOnly asks for no more of an object than its metadata, and metadataListOnly for
	// no more of those of a list.
	metadataOnly     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	metadataListOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// kubeSystem is a request for the namespace kube-system.
func (lw resourceListerWatcher) kubeSystem() *rest.Request {
	return lw.get().
		AbsPath("api", "v1", "namespaces", "kube-system").
		SetHeader("Accept", metadataOnly).
		MaxRetries(0) // the caller asks again
}

// namespaceUID is the UID of the namespace that a request is for.
func namespaceUID(ctx context.Context, request *rest.Request) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	namespace, err := readSmall[struct{ Metadata smallMeta }](ctx, request)
	return namespace.Metadata.UID, err
}

// readSmall reads an answer that is expected to be small. One of another form, such as the
// page of a proxy, is the zero T.
func readSmall[T any](ctx context.Context, request *rest.Request) (read T, err error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return read, answerError(err)
	}
	defer body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(body, most))
	if err != nil {
		return read, err
	}
	var decoded T
	if json.Unmarshal(text, &decoded) == nil {
		read = decoded
	}
	return read, nil
}

// hasNone reports whether err is of a server that has looked for an object, and does not
// have it, and not of one that does not serve its resource.
func hasNone(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &answer) {
		return false
	}
	details := answer.Status().Details
	return details != nil && details.Name != ""
}

// isRefusal tells an answer that will be the same again from one that may be another
// later, and from none.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch code := answer.Status().Code; code {
	case http.StatusNotImplemented:
		return true
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return 400 <= code && code < 500
	}
}

const (
	// sampled is how many keys are looked at to choose the objects of an inquiry, and
	// mostAsked how many are chosen.
	sampled, mostAsked = 64, 3
)

// sample returns some objects with the oldest versions, since these are the least likely to
// be gone. LeaveOut, which is called without a lock, tells which keys are not to be among them.
func (c *ResourceVersionStorage) sample(leaveOut func(key string) bool) []knownObject {
	c.mu.RLock()
	objects := someOf(c.reading())
	c.mu.RUnlock()
	return oldest(slices.DeleteFunc(objects, func(o knownObject) bool { return leaveOut(o.key) }))
}

// someOf returns some objects of a table.
func someOf(table *keytable.Table) (objects []knownObject) {
	keys, _ := table.KeysFrom(0, sampled)
	for _, key := range keys {
		if version, ok := table.Get(key); ok && version.ResourceVersion != "" {
			objects = append(objects, knownObject{key, version})
		}
	}
	return objects
}

// oldest returns those with the oldest versions.
func oldest(objects []knownObject) []knownObject {
	slices.SortStableFunc(objects, func(a, b knownObject) int {
		switch rv.Compare(a.version.ResourceVersion, b.version.ResourceVersion) {
		case rv.Older:
			return -1
		case rv.Newer:
			return 1
		}
		return 0
	})
	return objects[:min(len(objects), mostAsked)]
}

// responds reports whether lw, a ListerWatcher, is answered at all, as far as it can tell.
func responds(ctx context.Context, lw interface{}) bool {
	switch lw := lw.(type) {
	case resourceListerWatcher:
		return lw.responds(ctx)
	case filtered:
		return responds(ctx, lw.lw)
	default:
		return false
	}
}
