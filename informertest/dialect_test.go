package informertest_test

import (
	"bufio"
	"cmp"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/informertest"
)

const listPath = "/api/v1/configmaps"

// spoken starts a server of a dialect that has the config maps a/1 (version 2) and a/2 (version 3).
func spoken(t tester, d informertest.Dialect) *informertest.Server {
	s := start(t, informertest.Options{InMemory: true, Dialect: d})
	create(t, s, configMap("a", "1", "x"), configMap("a", "2", "x"))
	return s
}

// lines are the events of a watch until it is silent.
func lines(t *testing.T, s *informertest.Server, path string, pairs ...string) (text string) {
	t.Helper()
	resp := open(t, s, path, values(append(pairs, "watch", "true", "allowWatchBookmarks", "true", "timeoutSeconds", "65")...), "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	in := bufio.NewScanner(strings.NewReader(plain(string(body))))
	for in.Scan() {
		text += in.Text() + "\n"
	}
	return text
}

var initialEvents = []string{"sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan"}

func TestDialectOnTheWire(t *testing.T) {
	const (
		one      = `{"metadata":{"name":"1","namespace":"a","uid":"U","resourceVersion":"2","creationTimestamp":"T","labels":{"value":"x"}},"data":{"value":"x"}}`
		two      = `{"metadata":{"name":"2","namespace":"a","uid":"U","resourceVersion":"3","creationTimestamp":"T","labels":{"value":"x"}},"data":{"value":"x"}}`
		twin     = `{"metadata":{"name":"1","namespace":"a","uid":"U","resourceVersion":"1","creationTimestamp":"T","labels":{"value":"x"}},"data":{"value":"x"}}`
		listHead = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":`
	)
	without := func(text string) string {
		return strings.NewReplacer(`"resourceVersion":"2",`, "", `"resourceVersion":"3",`, "").Replace(text)
	}
	added := func(object string) string {
		return `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1",` + object[1:] + "}\n"
	}
	bookmark := func(metadata string) string {
		return `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{` + metadata + "}}}\n"
	}
	const end = `"annotations":{"k8s.io/initial-events-end":"true"}`

	for name, c := range map[string]struct {
		dialect           informertest.Dialect
		list, again       string // again is the second list, where it differs
		watchList, resume string
	}{
		"kube-apiserver": {
			list:      listHead + `{"resourceVersion":"3"},"items":[` + one + "," + two + "]}\n",
			watchList: added(one) + added(two) + bookmark(`"resourceVersion":"3",`+end) + bookmark(`"resourceVersion":"3"`) + bookmark(`"resourceVersion":"3"`),
			resume:    added(two) + bookmark(`"resourceVersion":"3"`) + bookmark(`"resourceVersion":"3"`),
		},
		"antrea": {
			dialect:   informertest.Antrea(),
			list:      listHead + `{},"items":[` + without(one+","+two) + "]}\n",
			watchList: without(added(one)+added(two)) + bookmark(`"resourceVersion":"2",`+end),
			resume:    without(added(one) + added(two)),
		},
		"porch": {
			dialect:   informertest.Porch(),
			list:      listHead + `{},"items":[` + one + "," + two + "]}\n",
			watchList: added(one) + added(two) + bookmark(`"resourceVersion":"3",`+end),
			resume:    `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 2: this server resumes no watch","reason":"Expired","code":410}}` + "\n",
		},
		"openshift": {
			dialect:   informertest.OpenShiftProjects(),
			list:      listHead + `{},"items":[` + one + "," + two + "]}\n",
			watchList: bookmark(end),
		},
		"replaying": {
			dialect:   informertest.Replaying(),
			list:      listHead + `{"resourceVersion":"3"},"items":[` + one + "," + two + "]}\n",
			watchList: added(one) + added(two),
			resume:    added(one) + added(two),
		},
		"kine": {
			dialect:   informertest.KineZeroBookmarks(),
			list:      listHead + `{"resourceVersion":"3"},"items":[` + one + "," + two + "]}\n",
			watchList: added(one) + added(two) + bookmark(`"resourceVersion":"3",`+end) + bookmark(`"resourceVersion":"0"`) + bookmark(`"resourceVersion":"0"`),
			resume:    added(two) + bookmark(`"resourceVersion":"0"`) + bookmark(`"resourceVersion":"0"`),
		},
		"unmarked": {
			dialect:   informertest.WithoutBookmarks(),
			list:      listHead + `{"resourceVersion":"3"},"items":[` + one + "," + two + "]}\n",
			watchList: added(one) + added(two),
			resume:    added(two),
		},
		"metrics": {
			dialect: informertest.MetricsServer(),
			list:    strings.ReplaceAll(listHead+`{},"items":[`+without(one+","+two)+"]}\n", `"uid":"U",`, ""),
		},
		"search": {
			dialect:   informertest.SearchCache(),
			list:      listHead + `{"resourceVersion":"3"},"items":[` + one + "," + twin + "," + two + "]}\n",
			again:     listHead + `{"resourceVersion":"3"},"items":[` + twin + "," + one + "," + two + "]}\n",
			watchList: added(one) + added(two),
			resume:    added(two),
		},
		"sorted": {
			dialect: informertest.SortingProxy(),
			list: `{"apiVersion":"v1","items":[{"data":{"value":"x"},"metadata":{"creationTimestamp":"T","labels":{"value":"x"},"name":"1","namespace":"a","resourceVersion":"2","uid":"U"}},` +
				`{"data":{"value":"x"},"metadata":{"creationTimestamp":"T","labels":{"value":"x"},"name":"2","namespace":"a","resourceVersion":"3","uid":"U"}}],` +
				`"kind":"ConfigMapList","metadata":{"resourceVersion":"3"}}` + "\n",
			resume: `{"object":{"apiVersion":"v1","data":{"value":"x"},"kind":"ConfigMap","metadata":{"creationTimestamp":"T","labels":{"value":"x"},"name":"2","namespace":"a","resourceVersion":"3","uid":"U"}},"type":"ADDED"}` + "\n" +
				strings.Repeat(`{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"3"}},"type":"BOOKMARK"}`+"\n", 2),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := spoken(t, c.dialect)
				for _, want := range []string{c.list, cmp.Or(c.again, c.list)} {
					code, body := ask(t, s, listPath, values("limit", "500"), "")
					require.Equal(t, http.StatusOK, code)
					require.Equal(t, want, plain(body))
				}
				if c.watchList != "" {
					require.Equal(t, c.watchList, lines(t, s, listPath, initialEvents...))
				}
				if c.dialect.RefuseWatches == 0 {
					require.Equal(t, c.resume, lines(t, s, listPath, "resourceVersion", "2"))
				}
			})
		})
	}
}

func TestDialectLeavesNamespacesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range informertest.Dialects() {
			s := start(t, informertest.Options{InMemory: true, Dialect: d})
			_, body := ask(t, s, "/api/v1/namespaces", nil, "")
			require.Equal(t, `{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`+"\n", body)
		}
	})
}

func TestDialectMarksTheVersionOfItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, informertest.Options{InMemory: true, Dialect: informertest.Porch()})
		w := follow(t, s, listPath, append(initialEvents, "allowWatchBookmarks", "true")...)
		w.want("BOOKMARK 0 initial-end")
	})
}

func TestDialectComputesListVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spoken(t, informertest.ComputedVersions())
		l, _ := list(t, s)
		require.Equal(t, "3", l.ResourceVersion)
		require.NoError(t, s.Delete(configMaps, "a", "2"))
		l, _ = list(t, s, "resourceVersion", "3", "resourceVersionMatch", "NotOlderThan")
		require.Equal(t, "2", l.ResourceVersion, "it fell")
		require.NoError(t, s.Delete(configMaps, "a", "1"))
		l, _ = list(t, s)
		require.Equal(t, "0", l.ResourceVersion)
	})
}

func TestDialectDeletesBarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spoken(t, informertest.OpenShiftProjects())
		w := open(t, s, listPath, values("watch", "true", "timeoutSeconds", "5"), "")
		require.NoError(t, s.Delete(configMaps, "a", "2"))
		body, err := io.ReadAll(w.Body)
		require.NoError(t, err)
		require.Equal(t, `{"type":"DELETED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"2","namespace":"a"}}}`+"\n", string(body))

		_, err = s.Create(widgets, widget("a", "1", 1))
		require.NoError(t, err)
		w = open(t, s, widgetsPath, values("watch", "true", "timeoutSeconds", "5"), "")
		require.NoError(t, s.Delete(widgets, "a", "1"))
		body, err = io.ReadAll(w.Body)
		require.NoError(t, err)
		require.Equal(t, `{"type":"DELETED","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"1","namespace":"a"}}}`+"\n", string(body))
	})
}

func TestDialectKeepsItsStoreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spoken(t, informertest.OwnStore())
		_, err := s.Create(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}})
		require.NoError(t, err)
		backup := s.Backup()
		create(t, s, configMap("a", "3", "x"))
		s.Restore(backup)
		code, body := ask(t, s, "/api/v1/namespaces", values("resourceVersion", "5", "resourceVersionMatch", "NotOlderThan"), "")
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, body, `"metadata":{"resourceVersion":"5"}`)
		code, _ = ask(t, s, "/api/v1/namespaces/kube-system", values("resourceVersion", "5"), "")
		require.Equal(t, http.StatusOK, code)
		_, status := list(t, s, "resourceVersion", "5", "resourceVersionMatch", "NotOlderThan")
		require.Equal(t, metav1.StatusReasonTimeout, status.Reason, "it does not have that version any more")
		require.Equal(t, strings.Repeat(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"4"}}}`+"\n", 2),
			lines(t, s, listPath, "resourceVersion", "5"))
	})
}

func TestDialectRefusesWatches(t *testing.T) {
	for code, reason := range map[int]metav1.StatusReason{
		405: metav1.StatusReasonMethodNotAllowed, 403: metav1.StatusReasonForbidden, 501: metav1.StatusReasonInternalError,
	} {
		s := start(t, informertest.Options{Dialect: informertest.Dialect{RefuseWatches: code}})
		_, status := list(t, s, "watch", "true")
		require.Equal(t, reason, status.Reason)
		client, err := kubernetes.NewForConfig(s.Config())
		require.NoError(t, err)
		found, err := client.Discovery().ServerResourcesForGroupVersion("v1")
		require.NoError(t, err)
		for _, r := range found.APIResources {
			if code == 405 && r.Name != "namespaces" {
				require.NotContains(t, r.Verbs, "watch", r.Name)
			} else {
				require.Contains(t, r.Verbs, "watch", r.Name)
			}
		}
	}
}

func TestDialectRefusesWatchLists(t *testing.T) {
	s := start(t, informertest.Options{Dialect: informertest.Dialect{WatchLists: informertest.WatchListRefused}})
	_, status := list(t, s, append(initialEvents, "watch", "true", "allowWatchBookmarks", "true")...)
	require.Equal(t, metav1.StatusReasonBadRequest, status.Reason)
}

func TestDialectIgnoresSelectors(t *testing.T) {
	s := start(t, informertest.Options{Dialect: informertest.Dialect{IgnoreSelectors: true}})
	create(t, s, configMap("a", "1", "x"), configMap("b", "2", "y"))
	l, _ := list(t, s, "labelSelector", "value=y")
	require.Equal(t, []string{"a/1", "b/2"}, names(l))
	l, _ = list(t, s, "fieldSelector", "metadata.name=2")
	require.Equal(t, []string{"a/1", "b/2"}, names(l))
	w := follow(t, s, listPath, "labelSelector", "value=z", "timeoutSeconds", "1")
	w.want("ADDED 1 2", "ADDED 2 3")
}

func TestDialectWithoutContentType(t *testing.T) {
	s := start(t, informertest.Options{Dialect: informertest.SortingProxy()})
	create(t, s, configMap("a", "1", "x"))
	for _, path := range []string{listPath, "/api/v1/namespaces/a/configmaps/1", listPath + "?watch=true&timeoutSeconds=1"} {
		path, query, _ := strings.Cut(path, "?")
		pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '=' || r == '&' })
		resp := open(t, s, path, values(pairs...), "")
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NotContains(t, resp.Header, "Content-Type")
	}
}

// TestDialectInProtobuf holds what client-go reads in protobuf against what it reads in JSON.
func TestDialectInProtobuf(t *testing.T) {
	for name, d := range informertest.Dialects() {
		if d.SortedKeys {
			continue // in JSON only
		}
		t.Run(name, func(t *testing.T) {
			var inJSON, inProtobuf []runtime.Object
			synctest.Test(t, func(t *testing.T) { inJSON = read(t, d, runtime.ContentTypeJSON) })
			synctest.Test(t, func(t *testing.T) { inProtobuf = read(t, d, runtime.ContentTypeProtobuf) })
			require.Equal(t, inJSON, inProtobuf)
		})
	}
}

// read is a list, and the objects of the events of a watch-list of a minute.
func read(t *testing.T, d informertest.Dialect, contentType string) []runtime.Object {
	s := start(t, informertest.Options{InMemory: true, Seed: 1, Dialect: d})
	create(t, s, configMap("a", "1", "x"), configMap("a", "2", "x"))
	config := s.Config()
	config.ContentConfig = rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	l, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	l.TypeMeta = metav1.TypeMeta{}
	for i := range l.Items {
		l.Items[i].TypeMeta = metav1.TypeMeta{}
	}
	yes, minute := true, int64(60)
	w, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, TimeoutSeconds: &minute,
	})
	if d.RefuseWatches != 0 {
		require.Equal(t, metav1.StatusReasonMethodNotAllowed, apierrors.ReasonForError(err))
		return []runtime.Object{l}
	}
	require.NoError(t, err)
	deletes := time.AfterFunc(time.Second, func() { _ = s.Delete(configMaps, "a", "2") })
	defer deletes.Stop()
	all := []runtime.Object{l}
	for e := range w.ResultChan() {
		all = append(all, e.Object)
	}
	require.Greater(t, len(all), 1)
	return all
}
