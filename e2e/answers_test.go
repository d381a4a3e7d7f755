package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/e2e/cluster"
	"github.com/rvinformer/informer/informertest"
)

// answering is a server that is asked, and what stands for a thing of its own in requests: {3} for
// the version of the write with that number, and {page} for a continue token.
type answering struct {
	config *rest.Config
	client *http.Client
	path   string
	writes []string // versions, in their order
	tokens map[string]string
}

// newAnswering makes the same writes to each server.
func newAnswering(ctx context.Context, t *testing.T, config *rest.Config, namespace string) *answering {
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	a := &answering{config: config, client: client, path: "/apis/example.com/v1/namespaces/" + namespace + "/widgets", tokens: map[string]string{}}
	dyn, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	widgets := dyn.Resource(cluster.WidgetResource).Namespace(namespace)
	write := func(name, label, version string) {
		widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "labels": map[string]any{"l": label}}}}
		var made *unstructured.Unstructured
		if version != "" {
			widget.SetResourceVersion(version)
			made, err = widgets.Update(ctx, widget, metav1.UpdateOptions{})
		} else {
			made, err = widgets.Create(ctx, widget, metav1.CreateOptions{})
		}
		require.NoError(t, err)
		a.writes = append(a.writes, made.GetResourceVersion())
	}
	for i, name := range []string{"a", "b", "b.1", "b-1", "c", "d"} { // 0 to 5
		write(name, fmt.Sprint(i%2), "")
	}
	write("a", "1", a.writes[0]) // 6
	write("b", "0", a.writes[1]) // 7
	require.NoError(t, widgets.Delete(ctx, "c", metav1.DeleteOptions{}))
	write("e", "1", "") // 8
	for name, query := range map[string]string{"page": "limit=2", "selected": "limit=1&labelSelector=l%3D1"} {
		code, body := a.ask(ctx, t, http.MethodGet, "?"+query, "", "")
		require.Equal(t, http.StatusOK, code)
		var list metav1.PartialObjectMetadataList
		require.NoError(t, json.Unmarshal(body, &list))
		a.tokens[name] = list.Continue
	}
	return a
}

func (a *answering) ask(ctx context.Context, t *testing.T, method, about, accept, body string) (code int, answer []byte) {
	for name, token := range a.tokens {
		about = strings.ReplaceAll(about, "{"+name+"}", url.QueryEscape(token))
	}
	for n, version := range a.writes {
		about = strings.ReplaceAll(about, fmt.Sprintf("{%d}", n), version)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.config.Host+a.path+about, strings.NewReader(body))
	require.NoError(t, err)
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := a.client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	answer, err = io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, answer
}

// inWords are answers without what is of one server alone, and without the bookmarks that say how time
// goes by: how many of them come before the end of a watch depends on how busy the machine is.
func (a *answering) inWords(ctx context.Context, t *testing.T, method, about, accept, body string) string {
	code, answer := a.ask(ctx, t, method, about, accept, body)
	words := fmt.Sprint(code)
	for decoder := json.NewDecoder(bytes.NewReader(answer)); ; {
		var document map[string]any
		err := decoder.Decode(&document)
		if err == io.EOF {
			return words
		}
		require.NoError(t, err, "%s %s: %s", method, about, answer)
		if kind, isEvent := document["type"].(string); isEvent {
			object := document["object"].(map[string]any)
			_, ends, _ := unstructured.NestedString(object, "metadata", "annotations", metav1.InitialEventsAnnotationKey)
			if kind != string(watch.Bookmark) || ends {
				words += "\n  " + kind + " " + a.describe(t, object)
			}
		} else {
			words += " " + a.describe(t, document)
		}
	}
}

func (a *answering) describe(t *testing.T, document map[string]any) string {
	u := unstructured.Unstructured{Object: document}
	switch {
	case u.GetKind() == "Status":
		text, err := json.Marshal(document)
		require.NoError(t, err)
		var status metav1.Status
		require.NoError(t, json.Unmarshal(text, &status))
		words := fmt.Sprintf("%s %q goes on %t, later %v, causes", status.Status, status.Reason, status.Continue != "", apierrors.IsTimeout(&apierrors.StatusError{ErrStatus: status}))
		if status.Details != nil {
			for _, cause := range status.Details.Causes {
				words += fmt.Sprintf(" %s of %q", cause.Type, cause.Field)
			}
		}
		return words
	case u.IsList():
		list, err := u.ToList()
		require.NoError(t, err)
		rest := "all"
		if left := list.GetRemainingItemCount(); left != nil {
			rest = fmt.Sprint(*left)
		}
		words := fmt.Sprintf("%s %s at %s, more %t, left %s:", list.GetAPIVersion(), list.GetKind(), a.version(list.GetResourceVersion()), list.GetContinue() != "", rest)
		for _, item := range list.Items {
			words += " " + a.describe(t, item.Object)
		}
		return words
	default:
		end := u.GetAnnotations()[metav1.InitialEventsAnnotationKey]
		return fmt.Sprintf("%s %s %s at %s %s", u.GetAPIVersion(), u.GetKind(), u.GetName(), a.version(u.GetResourceVersion()), end)
	}
}

// version names the write that has made a version.
func (a *answering) version(version string) string {
	if n := slices.Index(a.writes, version); n >= 0 && n < len(a.writes)-1 {
		return fmt.Sprint(n)
	}
	for _, known := range a.writes[:len(a.writes)-1] {
		if len(known) > len(version) || len(known) == len(version) && known > version {
			return "a time between"
		}
	}
	return "the end"
}

// The simulated server, which the other tests of this repository and those of its users ask,
// answers as a kube-apiserver does. The test does not run in parallel with others, because one of
// those deletes the definition of widgets.
func TestSimulatedServerAnswersAsKubeAPIServer(t *testing.T) {
	ctx := testContext(t)
	c := usual.Get(t)
	require.NoError(t, c.CreateWidgetDefinition(ctx))
	namespace, err := c.CreateNamespace(ctx, "answers")
	require.NoError(t, err)
	simulated := informertest.NewServer(informertest.Options{TLS: true})
	defer simulated.Close()
	kube, other := newAnswering(ctx, t, c.Config(), namespace), newAnswering(ctx, t, simulated.Config(), namespace)

	const future, initial = "9000000000", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	var reads []string
	for _, list := range []string{
		"", "limit=2", "limit=100", "limit=-1", "limit=x", "resourceVersion=0", "resourceVersion=0&limit=2", "resourceVersion=x", "resourceVersion=-1",
		"resourceVersion={6}", "resourceVersion={6}&limit=2", "resourceVersion={6}&resourceVersionMatch=Exact", "resourceVersion={6}&resourceVersionMatch=Exact&limit=1",
		"resourceVersion={6}&resourceVersionMatch=NotOlderThan", "resourceVersion={6}&resourceVersionMatch=NotOlderThan&limit=2", "resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=1",
		"resourceVersion=0&resourceVersionMatch=Exact", "resourceVersionMatch=Exact", "resourceVersionMatch=Newest", "resourceVersionMatch=Newest&resourceVersion={6}",
		"resourceVersion=" + future, "resourceVersion=" + future + "&resourceVersionMatch=Exact", "resourceVersion=" + future + "&limit=1",
		"continue=x", "continue={page}", "continue={page}&limit=1", "continue={page}&resourceVersion=0", "continue={page}&resourceVersion={6}", "continue={page}&resourceVersionMatch=Exact", "continue={selected}&labelSelector=l%3D1",
		"sendInitialEvents=false", initial, "timeoutSeconds=-1", "timeoutSeconds=x", "unheardOf=1", "watch=false",
		"labelSelector=l%3D1", "labelSelector=l%3D1&limit=1", "labelSelector=l+in+(1,2)", "labelSelector=%3D%3D", "labelSelector=!l",
		"fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name!%3Da", "fieldSelector=metadata.name%3Da,metadata.namespace%3Dx", "fieldSelector=spec.size%3D1", "fieldSelector=x",
	} {
		reads = append(reads, "?"+list)
	}
	for _, watch := range []string{
		"", "allowWatchBookmarks=true", "resourceVersion=0", "resourceVersion=0&allowWatchBookmarks=true", "resourceVersion={5}", "resourceVersion={4}&labelSelector=l%3D1", "resourceVersion={1}&fieldSelector=metadata.name%3Db",
		"resourceVersion=x", "resourceVersion=-1", "resourceVersion=" + future, "continue=x", "continue=x&resourceVersion={5}", "limit=1", "resourceVersionMatch=Exact", "resourceVersionMatch=Exact&resourceVersion={6}", "resourceVersionMatch=NotOlderThan",
		"sendInitialEvents=true", "sendInitialEvents=false", initial, initial + "&allowWatchBookmarks=true", initial + "&allowWatchBookmarks=true&resourceVersion=0", initial + "&allowWatchBookmarks=true&resourceVersion={6}",
		initial + "&allowWatchBookmarks=true&resourceVersion=" + future, initial + "&resourceVersion=x", initial + "&allowWatchBookmarks=true&labelSelector=l%3D1", "sendInitialEvents=true&resourceVersionMatch=Exact",
		"sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={5}", "labelSelector=%3D%3D", "fieldSelector=spec.size%3D1",
	} {
		reads = append(reads, "?watch=true&timeoutSeconds=2&"+watch)
	}
	reads = append(reads, "?watch=true&timeoutSeconds=x", "?watch=maybe&timeoutSeconds=1", "/a", "/x", "/a?resourceVersion={6}", "/a?resourceVersion=x", "/a?resourceVersion="+future)

	compare := func(t *testing.T, method, about, accept, body string) {
		require.Equal(t, kube.inWords(ctx, t, method, about, accept, body), other.inWords(ctx, t, method, about, accept, body), "%s %s %s", method, about, body)
	}
	t.Run("reads", func(t *testing.T) {
		for _, about := range sample(reads, 24) {
			t.Run(about, func(t *testing.T) {
				t.Parallel()
				compare(t, http.MethodGet, about, "", "")
			})
		}
	})

	metadata := "application/json;as=PartialObjectMetadata%s;g=meta.k8s.io;v=v1,application/json"
	compare(t, http.MethodGet, "", fmt.Sprintf(metadata, "List"), "")
	compare(t, http.MethodGet, "/a", fmt.Sprintf(metadata, ""), "")
	compare(t, http.MethodGet, "?watch=true&timeoutSeconds=1&allowWatchBookmarks=true&"+initial, fmt.Sprintf(metadata, ""), "")

	widget := func(metadata string) string {
		return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{` + metadata + `}}`
	}
	compare(t, http.MethodPost, "", "", widget(`"name":"a"`))
	compare(t, http.MethodPost, "", "", widget(`"name":"x","namespace":"y"`))
	compare(t, http.MethodPost, "", "", widget(`"name":"x","resourceVersion":"5"`))
	compare(t, http.MethodPut, "/x", "", widget(`"name":"x"`))
	compare(t, http.MethodPut, "/a", "", widget(`"name":"a"`))
	compare(t, http.MethodPut, "/a", "", widget(`"name":"b","resourceVersion":"1"`))
	compare(t, http.MethodPut, "/a", "", widget(`"name":"a","resourceVersion":"1"`))
	compare(t, http.MethodDelete, "/x", "", "")
	compare(t, http.MethodDelete, "/a", "", `{"preconditions":{"uid":"x"}}`)
	compare(t, http.MethodDelete, "/a", "", `{"preconditions":{"resourceVersion":"1"}}`)
	compare(t, http.MethodDelete, "/a", "", "")
	compare(t, http.MethodDelete, "/a", "", "")
}
