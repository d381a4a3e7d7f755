package informertest_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rvinformer/informer/informertest"
)

// five holds a/1 to a/3 and b/1, b/2 at resource versions 2 to 6.
func five(t testing.TB) *informertest.Server {
	s := start(t, informertest.Options{})
	create(t, s, fiveObjects()...)
	return s
}

func fiveObjects() []*corev1.ConfigMap {
	return []*corev1.ConfigMap{configMap("b", "2", "x"), configMap("a", "1", "x"), configMap("a", "3", "y"), configMap("b", "1", "y"), configMap("a", "2", "x")}
}

func TestListAtResourceVersions(t *testing.T) {
	s := five(t)
	require.NoError(t, s.Delete(configMaps, "a", "1"))             // 7
	_, err := s.Update(configMaps, configMap("a", "2", "changed")) // 8
	require.NoError(t, err)
	now := []string{"a/2", "a/3", "b/1", "b/2"}
	then := []string{"a/1", "a/2", "a/3", "b/1", "b/2"}

	for _, c := range []struct {
		ask  []string
		rv   string
		want []string
	}{
		{nil, "8", now},
		{[]string{"resourceVersion", "0"}, "8", now},
		{[]string{"resourceVersion", "0", "limit", "1"}, "8", now},
		{[]string{"resourceVersion", "0", "resourceVersionMatch", "NotOlderThan"}, "8", now},
		{[]string{"resourceVersion", "6"}, "8", now},
		{[]string{"resourceVersion", "6", "resourceVersionMatch", "NotOlderThan", "limit", "9"}, "8", now},
		{[]string{"resourceVersion", "6", "resourceVersionMatch", "Exact"}, "6", then},
		{[]string{"resourceVersion", "6", "limit", "9"}, "6", then},
		{[]string{"resourceVersion", "2", "resourceVersionMatch", "Exact"}, "2", []string{"b/2"}},
		{[]string{"resourceVersion", "1", "resourceVersionMatch", "Exact"}, "1", []string{}},
		{[]string{"labelSelector", "value in (x,y)"}, "8", []string{"a/3", "b/1", "b/2"}},
		{[]string{"labelSelector", "value=x", "fieldSelector", "metadata.namespace=b,metadata.name=2"}, "8", []string{"b/2"}},
		{[]string{"labelSelector", "value=x", "fieldSelector", "metadata.name!=2"}, "8", []string{}},
	} {
		t.Run(fmt.Sprint(c.ask), func(t *testing.T) {
			got, status := list(t, s, c.ask...)
			require.Nil(t, status)
			require.Equal(t, c.want, names(got))
			require.Equal(t, c.rv, got.ResourceVersion)
			require.Empty(t, got.Continue)
			require.Nil(t, got.RemainingItemCount)
		})
	}

	got, _ := list(t, s, "resourceVersion", "6", "resourceVersionMatch", "Exact")
	require.Equal(t, "x", got.Items[1].Data["value"], "the state of then")
}

func TestListRefusals(t *testing.T) {
	synctest.Test(t, listRefusals)
}

func listRefusals(t *testing.T) {
	s := start(t, informertest.Options{InMemory: true})
	create(t, s, fiveObjects()...)
	first, _ := list(t, s, "limit", "2")
	s.Compact()
	for _, c := range []struct {
		ask    []string
		code   int
		reason metav1.StatusReason
		causes int // for being invalid, if there are several
	}{
		{[]string{"resourceVersion", "7"}, 504, metav1.StatusReasonTimeout, 0},
		{[]string{"resourceVersion", "7", "resourceVersionMatch", "NotOlderThan"}, 504, metav1.StatusReasonTimeout, 0},
		{[]string{"resourceVersion", "7", "resourceVersionMatch", "Exact"}, 504, metav1.StatusReasonTimeout, 0},
		{[]string{"resourceVersion", "5", "resourceVersionMatch", "Exact"}, 410, metav1.StatusReasonExpired, 0},
		{[]string{"resourceVersion", "5", "limit", "2"}, 410, metav1.StatusReasonExpired, 0},
		{[]string{"resourceVersion", "abc"}, 400, metav1.StatusReasonBadRequest, 0},
		{[]string{"resourceVersion", "99999999999999999999999"}, 400, metav1.StatusReasonBadRequest, 0},
		{[]string{"resourceVersionMatch", "Exact"}, 422, metav1.StatusReasonInvalid, 0},
		{[]string{"resourceVersion", "6", "resourceVersionMatch", "Newest"}, 422, metav1.StatusReasonInvalid, 0},
		{[]string{"resourceVersion", "0", "resourceVersionMatch", "Exact"}, 422, metav1.StatusReasonInvalid, 0},
		{[]string{"sendInitialEvents", "true"}, 422, metav1.StatusReasonInvalid, 0},
		{[]string{"sendInitialEvents", "true", "resourceVersionMatch", "Newest", "continue", "x"}, 422, metav1.StatusReasonInvalid, 4},
		{[]string{"continue", first.Continue, "resourceVersion", "6"}, 400, metav1.StatusReasonBadRequest, 0},
		{[]string{"continue", first.Continue, "resourceVersion", "6", "resourceVersionMatch", "Exact"}, 422, metav1.StatusReasonInvalid, 0},
		{[]string{"continue", "%%%"}, 400, metav1.StatusReasonBadRequest, 0},
		{[]string{"continue", base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v2","rv":6,"start":"a/1"}`))}, 400, metav1.StatusReasonBadRequest, 0},
		{[]string{"continue", base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":0,"start":"a/1"}`))}, 400, metav1.StatusReasonBadRequest, 0},
		{[]string{"limit", "many"}, 400, metav1.StatusReasonBadRequest, 0},
		{[]string{"labelSelector", "a in b"}, 400, metav1.StatusReasonBadRequest, 0},
		{[]string{"fieldSelector", "spec.nodeName=n"}, 400, metav1.StatusReasonBadRequest, 0},
	} {
		begin := time.Now()
		_, status := list(t, s, c.ask...)
		require.NotNil(t, status, c.ask)
		require.EqualValues(t, c.code, status.Code, "%v: %s", c.ask, status.Message)
		require.Equal(t, c.reason, status.Reason, c.ask)
		if c.reason == metav1.StatusReasonInvalid {
			require.Len(t, status.Details.Causes, max(1, c.causes), c.ask)
		}
		require.NotEmpty(t, status.Message, c.ask)
		waited := time.Duration(0)
		if c.code == http.StatusGatewayTimeout {
			waited = 3 * time.Second
			require.EqualValues(t, 1, status.Details.RetryAfterSeconds)
			require.True(t, apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: *status}, metav1.CauseTypeResourceVersionTooLarge))
		}
		require.Equal(t, waited, time.Since(begin), c.ask)
	}

	// Of the resource version that the compaction kept, the state is known.
	rest, status := list(t, s, "continue", first.Continue, "resourceVersion", "0")
	require.Nil(t, status)
	require.Equal(t, []string{"a/3", "b/1", "b/2"}, names(rest))
	whole, status := list(t, s, "resourceVersion", "6", "resourceVersionMatch", "Exact")
	require.Nil(t, status)
	require.Len(t, whole.Items, 5)
}

func TestPagesShowOneState(t *testing.T) {
	s := five(t)
	first, _ := list(t, s, "limit", "2")
	require.Equal(t, []string{"a/1", "a/2"}, names(first))
	require.EqualValues(t, 3, *first.RemainingItemCount)

	require.NoError(t, s.Delete(configMaps, "b", "1"))
	create(t, s, configMap("a", "25", "x"))
	_, err := s.Update(configMaps, configMap("b", "2", "changed"))
	require.NoError(t, err)

	second, _ := list(t, s, "limit", "2", "continue", first.Continue)
	require.Equal(t, []string{"a/3", "b/1"}, names(second))
	require.Equal(t, first.ResourceVersion, second.ResourceVersion)
	require.EqualValues(t, 1, *second.RemainingItemCount)

	third, _ := list(t, s, "limit", "2", "continue", second.Continue)
	require.Equal(t, []string{"b/2"}, names(third))
	require.Equal(t, "x", third.Items[0].Data["value"])
	require.Equal(t, first.ResourceVersion, third.ResourceVersion)
	require.Empty(t, third.Continue)
	require.Nil(t, third.RemainingItemCount)

	selected, _ := list(t, s, "limit", "1", "labelSelector", "value=x")
	require.NotEmpty(t, selected.Continue)
	require.Nil(t, selected.RemainingItemCount, "a selector hides how many objects are left")
}

func TestExpiredTokenOffersAnInconsistentRest(t *testing.T) {
	s := five(t)
	first, _ := list(t, s, "limit", "2")
	require.NoError(t, s.Delete(configMaps, "a", "3"))
	create(t, s, configMap("a", "15", "x"), configMap("a", "25", "x"))
	s.Compact()

	_, status := list(t, s, "limit", "2", "continue", first.Continue)
	require.EqualValues(t, http.StatusGone, status.Code)
	require.Equal(t, metav1.StatusReasonExpired, status.Reason)
	rest, status := list(t, s, "continue", status.Continue)
	require.Nil(t, status)
	require.Equal(t, []string{"a/25", "b/1", "b/2"}, names(rest), "all behind the last object of the page before")
	require.Equal(t, "9", rest.ResourceVersion)
}

func TestListOfManyIsSorted(t *testing.T) {
	const n = 5000
	s := start(t, informertest.Options{})
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	require.NoError(t, s.Load(configMaps, reused(order)))

	listed := func() []string {
		var got []string
		left, token := -1, ""
		for {
			page, status := list(t, s, "limit", "700", "continue", token)
			require.Nil(t, status)
			got = append(got, names(page)...)
			if token = page.Continue; token == "" {
				return got
			}
			if left >= 0 {
				require.EqualValues(t, left-700, *page.RemainingItemCount)
			}
			left = int(*page.RemainingItemCount)
		}
	}
	got := listed()
	require.Len(t, got, n)
	require.True(t, slices.IsSorted(got))

	versions, err := s.ResourceVersions(configMaps, "ns")
	require.NoError(t, err)
	require.Len(t, versions, n)
	require.Equal(t, fmt.Sprint(2+slices.Index(order, 17)), versions["ns/000017"])

	for _, i := range order[:n/2] {
		require.NoError(t, s.Delete(configMaps, "ns", fmt.Sprintf("%06d", i)))
	}
	s.Compact()
	require.Len(t, listed(), n-n/2)
	require.NoError(t, s.Load(configMaps, reused(order[:n/2])))
	require.Equal(t, got, listed())
}

// reused yields one object again and again under the names given.
func reused(order []int) iter.Seq[runtime.Object] {
	return func(yield func(runtime.Object) bool) {
		o := configMap("ns", "", "x")
		for _, i := range order {
			o.Name = fmt.Sprintf("%06d", i)
			if !yield(o) {
				return
			}
		}
	}
}

// many yields pods of about 4 KB, in an order that is not that of their names.
func many(n int) iter.Seq[runtime.Object] {
	return func(yield func(runtime.Object) bool) {
		o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Annotations: map[string]string{}}}
		for i := range 40 {
			o.Annotations[fmt.Sprintf("annotation-%d", i)] = strings.Repeat("0123456789", 8)
		}
		for i := range n {
			o.Name = fmt.Sprintf("pod-%07d", (i*7919)%n)
			if !yield(o) {
				return
			}
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		s := informertest.NewServer(informertest.Options{})
		require.NoError(b, s.Load(pods, many(n)))
		s.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
}

// BenchmarkPage must cost the same however many objects there are.
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint("objects=", n), func(b *testing.B) {
			s := start(b, informertest.Options{})
			require.NoError(b, s.Load(pods, many(n)))
			token := ""
			for b.Loop() {
				resp, err := http.Get(s.URL() + "/api/v1/pods?" + values("limit", "500", "continue", token).Encode())
				require.NoError(b, err)
				head := make([]byte, 500)
				_, err = io.ReadFull(resp.Body, head)
				require.NoError(b, err)
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(b, err)
				require.NoError(b, resp.Body.Close())
				token = ""
				if found := tokenPattern.FindSubmatch(head); found != nil {
					token = string(found[1])
				}
			}
		})
	}
}

var tokenPattern = regexp.MustCompile(`"continue":"([^"]+)"`)
