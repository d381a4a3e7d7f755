package lists_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/informertest"
	"github.com/rvinformer/informer/objectcache"
	"github.com/rvinformer/informer/tests/harness"
)

// oddLists answers every list of pods while there is a text, as something on the way does that does
// not ask the server. Watch-lists are refused meanwhile.
type oddLists struct{ text atomic.Pointer[string] }

func (a *oddLists) set(text string) { a.text.Store(&text) }

func (a *oddLists) wrap(server http.Handler) http.Handler {
	return harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
		text := a.text.Load()
		switch {
		case text == nil || *text == "" || !strings.HasSuffix(r.URL.Path, "/pods"):
			return true
		case harness.IsWatchList(r):
			http.Error(w, "no", http.StatusNotImplemented)
			return false
		case harness.IsWatch(r):
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, *text)
		return false
	})(server)
}

// forget has the next watch find that its version has expired.
func forget(w *harness.World) {
	w.CreatePods("zz/later")
	w.DeletePods("zz/later")
	w.Compact()
}

// expire is forget for the watch that is open, too.
func expire(w *harness.World) {
	forget(w)
	w.Inject(informertest.Fault{Match: informertest.Match{Verbs: []string{"watch", "watch-list"}}, Effect: informertest.ErrorEvent(410), Times: 1})
}

// followed is an informer that a process begins, and what its handler is told.
type followed interface{ RunWithContext(ctx context.Context) }

// What was known before a process began counts as what it has listed itself: an empty list without a
// version deletes nothing.
func TestRule8EmptyListAfterARestartDeletesNothing(t *testing.T) {
	type restart func(t *testing.T, w *harness.World, r *harness.Recorder, mode informer.ListMode) (again func() followed)
	for name, begin := range map[string]restart{
		"checkpoint": func(t *testing.T, w *harness.World, r *harness.Recorder, mode informer.ListMode) func() followed {
			saved := w.Lived(r)
			return func() followed {
				return harness.FollowAuto(w, informer.InformerConfig{Handler: r, Checkpoint: saved, ListMode: mode})
			}
		},
		"storage": func(t *testing.T, w *harness.World, r *harness.Recorder, mode informer.ListMode) func() followed {
			storage := informer.NewResourceVersionStorage()
			harness.Fill(t, w, storage, r)
			return func() followed {
				return harness.FollowAuto(w, informer.InformerConfig{Handler: r, Storage: storage, ListMode: mode})
			}
		},
		"snapshot": func(t *testing.T, w *harness.World, r *harness.Recorder, mode informer.ListMode) func() followed {
			saved := &harness.MemoryCheckpoint{}
			cached := func() *objectcache.Informer {
				i := objectcache.NewSharedIndexInformerWithOptions(w.Lister(), &unstructured.Unstructured{}, objectcache.Options{Snapshot: saved, SnapshotSecrets: true, ListMode: mode})
				_, err := i.AddEventHandler(r)
				require.NoError(t, err)
				return i
			}
			stop := harness.Start(cached().RunWithContext)
			time.Sleep(10 * time.Second)
			stop()
			return func() followed { return cached() }
		},
	} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeAuto} {
			for _, text := range []string{
				`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`,
				`{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`,
				`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}`,
			} {
				for _, named := range []bool{true, false} {
					t.Run(fmt.Sprint(name, "/", mode, "/", text, "/kube-system ", named), func(t *testing.T) {
						var odd oddLists
						harness.Bubble(t, informertest.Options{Wrap: odd.wrap}, func(t *testing.T, w *harness.World) {
							if named {
								w.CreateKubeSystem()
							}
							w.CreatePods(harness.Keys(40)...)
							var r harness.Recorder
							again := begin(t, w, &r, mode)
							forget(w)
							odd.set(text)
							r.Forget()
							defer harness.Start(again().RunWithContext)()
							time.Sleep(30 * time.Second)
							for _, event := range r.Events() {
								require.NotContains(t, event, "delete")
							}
							odd.set("")
							w.DeletePods("a/0007")
							time.Sleep(time.Minute)
							w.RequireState(&r)
						})
					})
				}
			}
		}
	}
}

// A complete list whose version is missing, "0", without an order, or older deletes nothing while the
// server has the version that is known.
func TestRule8OddListsDeleteNothing(t *testing.T) {
	const some = `{"metadata":{"name":"0001","namespace":"a","resourceVersion":"3","uid":"u"}}`
	for name, version := range map[string]string{"none": "", "zero": "0", "unordered": "v-1a", "older": "3"} {
		for _, mode := range []informer.ListMode{informer.ListModePaged, informer.ListModeFull, informer.ListModeAuto} {
			for _, named := range []bool{true, false} {
				t.Run(fmt.Sprint(name, "/", mode, "/kube-system ", named), func(t *testing.T) {
					for _, items := range []string{"", some} {
						var odd oddLists
						harness.Bubble(t, informertest.Options{Wrap: odd.wrap}, func(t *testing.T, w *harness.World) {
							if named {
								w.CreateKubeSystem()
							}
							w.CreatePods(harness.Keys(36)...)
							var r harness.Recorder
							i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r, ListMode: mode})
							time.Sleep(11 * time.Second)
							r.Forget()
							odd.set(fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q},"items":[%s]}`, version, items))
							expire(w)
							time.Sleep(30 * time.Second)
							deleted := 0
							for _, event := range r.Events() {
								// a/0001 has another UID, and expire creates and deletes zz/later.
								if strings.HasPrefix(event, "delete") && event != "delete a/0001 unknown" && event != "delete zz/later" {
									deleted++
								}
							}
							require.Zero(t, deleted, "%v", r.Events())
							for range 60 { // in between, a watch-list may be what has failed last
								if err := i.Status().LastError; err != nil && strings.Contains(err.Error(), "deletes nothing") {
									break
								}
								time.Sleep(time.Second)
							}
							require.ErrorContains(t, i.Status().LastError, "deletes nothing")
							odd.set("")
							w.DeletePods("a/0007")
							time.Sleep(2 * time.Minute)
							w.RequireState(&r)
							require.NoError(t, i.Status().LastError)
						})
					}
				})
			}
		}
	}
}

// A server that is rolled back to one whose lists have no version is believed when it insists: for two
// minutes, or for an hour where its lists are empty.
func TestServerRolledBackToListsWithoutVersions(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		for _, empty := range []bool{false, true} {
			t.Run(fmt.Sprint("foreign ", foreign, "/empty ", empty), func(t *testing.T) {
				var odd oddLists
				harness.Bubble(t, informertest.Options{Wrap: odd.wrap}, func(t *testing.T, w *harness.World) {
					w.CreateKubeSystem()
					w.CreatePods("a/1", "a/2")
					var r harness.Recorder
					lw := w.Lister()
					if foreign {
						own := w.Factory().ForResource("", harness.Pods)
						lw = harness.Script{
							List:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return own.List(o) },
							Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return own.Watch(o) },
						}.LW()
					}
					i := harness.Running(w, informer.InformerConfig{Handler: &r, ListerWatcher: lw})
					time.Sleep(11 * time.Second)
					r.Forget()
					items := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"1","namespace":"a"}}`
					if empty {
						items = ""
					}
					odd.set(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + items + `]}`)
					expire(w)
					time.Sleep(time.Minute)
					require.NotContains(t, r.Events(), "delete a/2 unknown")
					require.ErrorIs(t, i.Status().LastError, informer.ErrNotList)
					time.Sleep(3 * time.Minute)
					if empty {
						time.Sleep(50 * time.Minute)
						require.NotContains(t, r.Events(), "delete a/2 unknown")
						time.Sleep(15 * time.Minute)
						require.Subset(t, r.Events(), []string{"delete a/1 unknown", "delete a/2 unknown"})
						return
					}
					require.Contains(t, r.Events(), "delete a/2 unknown")
					odd.set(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`) // which lists are from now on
					expire(w)
					time.Sleep(time.Minute)
					require.Contains(t, r.Events(), "delete a/1 unknown")
				})
			})
		}
	}
}

// Marks of watch-lists may have a version where lists have none, and objects too (Antrea), or versions
// without an order (porch). The list is believed, at once where nothing is to be deleted.
func TestMarksHaveVersionsAndListsHaveNone(t *testing.T) {
	for _, test := range []struct{ name, mark, object string }{{"antrea", "7", ""}, {"porch", "5f3c", `,"resourceVersion":"9a1b"`}} {
		t.Run(test.name, func(t *testing.T) {
			object := func(name string) string {
				return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"a","uid":"u-%s"%s}}`, name, name, test.object)
			}
			var marks atomic.Bool
			var items atomic.Pointer[string]
			has := func(names ...string) {
				var all []string
				for _, name := range names {
					all = append(all, object(name))
				}
				text := strings.Join(all, ",")
				items.Store(&text)
			}
			server := harness.Before(func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case !strings.HasSuffix(r.URL.Path, "/pods"):
					return true
				case !harness.IsWatch(r):
					fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[%s]}`, *items.Load())
					return false
				case harness.IsWatchList(r) && !marks.Load():
					http.Error(w, "no", http.StatusNotImplemented)
					return false
				case harness.IsWatchList(r):
					for _, o := range strings.SplitAfter(*items.Load(), "}}") {
						if o = strings.Trim(o, ","); o != "" && test.object != "" {
							fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", o)
						}
					}
					fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":%q,"annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", test.mark)
				default:
					fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
					return false
				}
				_ = http.NewResponseController(w).Flush()
				time.Sleep(11 * time.Second)
				if test.object == "" {
					fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object("1"))
				}
				return false
			})
			harness.Bubble(t, informertest.Options{Wrap: server}, func(t *testing.T, w *harness.World) {
				w.CreateKubeSystem()
				var r harness.Recorder
				marks.Store(true)
				if has(); test.object != "" {
					has("1", "2")
				}
				i := harness.RunningAuto(w, informer.InformerConfig{Handler: &r})
				time.Sleep(10 * time.Second)
				require.True(t, i.HasSynced())
				has("1", "2")
				marks.Store(false)
				time.Sleep(time.Minute)
				require.Len(t, r.State(), 2)
				require.NotContains(t, fmt.Sprint(r.Events()), "delete")
				has("2")
				time.Sleep(4 * time.Minute)
				require.Contains(t, r.Events(), "delete a/1 unknown")
				has()
				time.Sleep(2 * time.Minute)
				require.Empty(t, r.State(), "lists have no version here")
			})
		})
	}
}
