package factory_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rvinformer/informer"
	"github.com/rvinformer/informer/factory"
	"github.com/rvinformer/informer/informertest"
)

// eachTold asks for an informer of each kind, which counts what it is told.
func eachTold(t *testing.T, f *factory.Factory, s *informertest.Server, gvr schema.GroupVersionResource) (
	shared *factory.Lease[cache.SharedIndexInformer], versions *factory.Lease[informer.ResourceVersionInformer], sharedTold, told *tally,
) {
	sharedTold, told = &tally{}, &tally{}
	shared, err := f.Acquire(gvr, factory.InformerOptions{InformerType: factory.DynamicInformer}, dynamicFunc(t, s, gvr))
	require.NoError(t, err)
	_, err = shared.Informer.AddEventHandler(sharedTold)
	require.NoError(t, err)
	versions, err = f.AcquireResourceVersion(gvr, factory.InformerOptions{}, versionsFunc(t, s, gvr, told))
	require.NoError(t, err)
	return shared, versions, sharedTold, told
}

// each asks for an informer of each kind.
func each(t *testing.T, f *factory.Factory, s *informertest.Server, gvr schema.GroupVersionResource) (shared, versions func() factory.Status) {
	a, b, _, _ := eachTold(t, f, s, gvr)
	return a.Status, b.Status
}

func TestWaitSaysWhatHasNotSyncedAndWhy(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		s.Inject(informertest.Fault{Match: informertest.Match{Resource: configMaps}, Effect: informertest.Status(403)})
		each(t, f, s, pods)
		each(t, f, s, configMaps)
		f.InformerFor(pods, factory.InformerOptions{Namespace: "unstarted"}, newStubFunc)
		require.NoError(t, f.WaitForCacheSyncWithContext(t.Context()).AsError(), "none is started")
		began := time.Now()
		for _, status := range f.Statuses() {
			if status.Key.Namespace == "unstarted" {
				continue
			}
			require.NoError(t, f.StartOne(status.Key, nil))
			require.Equal(t, informer.PhaseIdle, status.Phase)
			require.Zero(t, status.Started)
		}

		gaveUp := errors.New("lost patience")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, gaveUp)
		defer cancel()
		result := f.WaitForCacheSyncWithContext(ctx)
		require.Equal(t, time.Minute, time.Since(began))
		require.ErrorIs(t, result.AsError(), gaveUp)
		require.Len(t, result.Unsynced, 2)
		for i, of := range []factory.InformerType{factory.DynamicInformer, factory.ResourceVersionInformer} {
			status := result.Unsynced[i]
			require.Equal(t, configMaps, status.Key.Resource)
			require.Equal(t, of, status.Key.InformerType)
			require.Equal(t, informer.PhaseBackoff, status.Phase)
			require.Equal(t, factory.ErrorForbidden, status.ErrorClass())
			require.Equal(t, began, status.Started)
			require.WithinRange(t, status.LastErrorTime, began, time.Now())
			require.Equal(t, began, status.FailingSince, "the newest failure was at %v", status.LastErrorTime)
			require.Greater(t, status.LastErrorTime, began)
			require.ErrorContains(t, result.AsError(), status.Key.String()+": backoff, started "+began.Format(time.RFC3339)+", failing since "+began.Format(time.RFC3339)+", forbidden: ")
		}
		require.False(t, f.WaitForCacheSync(ctx.Done()))
		for _, status := range f.Statuses() {
			if status.Key.Resource == pods && status.Key.Namespace == "" {
				require.True(t, status.Synced)
				require.Equal(t, informer.PhaseWatching, status.Phase)
				require.NoError(t, status.LastError)
			}
		}
	})
}

func TestStatusOfWhatHasEnded(t *testing.T) {
	alone(t, func(t *testing.T, f *factory.Factory) {
		synced, unsynced := newStub(), newStub()
		close(synced.synced)
		f.InformerFor(pods, factory.InformerOptions{}, always(synced))
		f.InformerFor(configMaps, factory.InformerOptions{}, always(unsynced))
		ctx, stop := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		stop()
		f.Shutdown()
		result := f.WaitForCacheSyncWithContext(t.Context())
		require.ErrorIs(t, result.AsError(), factory.ErrStopped)
		require.Len(t, result.Unsynced, 1)
		require.Equal(t, configMaps, result.Unsynced[0].Key.Resource)
		require.Equal(t, informer.PhaseStopped, result.Unsynced[0].Phase)
		status, exists := f.Status(key(t, factory.InformerOptions{}))
		require.True(t, exists)
		require.True(t, status.Synced)
		require.Equal(t, informer.PhaseStopped, status.Phase)
	})
}

// What an informer failed with when it ended is remembered, and what was over by then is not.
func TestStatusOfWhatHasEndedFailing(t *testing.T) {
	for _, healed := range []bool{false, true} {
		bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
			shared, versions := each(t, f, s, pods)
			heal := s.Inject(informertest.Fault{Effect: informertest.Status(403)})
			ctx, stop := context.WithCancel(t.Context())
			began := time.Now()
			f.StartWithContext(ctx)
			time.Sleep(10 * time.Minute)
			if healed {
				heal()
				time.Sleep(10 * time.Minute)
			}
			stop()
			f.Shutdown()
			heal()
			for _, status := range []factory.Status{shared(), versions()} {
				require.Equal(t, informer.PhaseStopped, status.Phase)
				require.Equal(t, healed, status.Synced)
				if healed {
					require.NoError(t, status.LastError)
					require.Zero(t, status.FailingSince)
				} else {
					require.Equal(t, factory.ErrorForbidden, status.ErrorClass())
					require.Equal(t, began, status.FailingSince)
				}
			}
		})
	}
}

// A failure is over when the resource version moves on.
func TestStatusAfterATrouble(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		shared, versions := each(t, f, s, pods)
		f.Start(nil)
		require.True(t, f.WaitForCacheSync(t.Context().Done()))
		heal := s.Inject(informertest.Fault{Effect: informertest.Status(503)})
		s.CloseClientConnections()
		began := time.Now()
		time.Sleep(5 * time.Minute)
		for _, status := range []factory.Status{shared(), versions()} {
			require.WithinRange(t, status.FailingSince, began, began.Add(2*time.Minute), "%v", status)
			require.WithinRange(t, status.LastErrorTime, began.Add(3*time.Minute), time.Now(), "%v", status)
			require.Equal(t, informer.PhaseBackoff, status.Phase, "%v", status)
			require.Equal(t, factory.ErrorServer, status.ErrorClass(), "%v", status)
			require.True(t, status.Synced)
		}
		heal()
		create(t, s, pods, "web")
		time.Sleep(5 * time.Minute)
		for _, status := range []factory.Status{shared(), versions()} {
			require.Equal(t, informer.PhaseWatching, status.Phase, "%v", status)
			require.NoError(t, status.LastError)
			require.Zero(t, status.FailingSince)
		}
	})
}

// A custom resource may come after its informer, go, and come again.
func TestCustomResourceComesAndGoes(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		s.RemoveResource(widgets)
		shared, versions, sharedTold, told := eachTold(t, f, s, widgets)
		f.Start(nil)
		notThere := func() {
			t.Helper()
			for _, status := range []factory.Status{shared.Status(), versions.Status()} {
				require.Equal(t, factory.ErrorNotFound, status.ErrorClass(), "%v", status)
				require.Equal(t, informer.PhaseBackoff, status.Phase)
			}
		}
		time.Sleep(10 * time.Minute)
		notThere()
		require.False(t, f.WaitForCacheSync(closedChannel()))
		for _, key := range []factory.Key{shared.Key(), versions.Key()} { // an unknown resource is named
			require.ErrorContains(t, f.WaitForCacheSyncWithContext(endedContext()).AsError(), key.String()+": backoff, started ")
		}
		require.ErrorContains(t, f.WaitForCacheSyncWithContext(endedContext()).AsError(), ", not found: ")

		for round := range int32(3) {
			s.AddResource(widgetResource)
			create(t, s, widgets, "one")
			create(t, s, widgets, "two")
			time.Sleep(time.Minute + time.Second)
			require.True(t, f.WaitForCacheSync(closedChannel()))
			require.Equal(t, []int32{2 * (round + 1), 2 * (round + 1)}, []int32{sharedTold.added.Load(), told.added.Load()})
			s.RemoveResource(widgets)
			time.Sleep(10 * time.Minute)
			require.Equal(t, []int32{2 * (round + 1), 2 * (round + 1)}, []int32{sharedTold.deleted.Load(), told.deleted.Load()})
			notThere()
			require.Empty(t, shared.Informer.GetStore().ListKeys())
		}
	})
}

// When nothing was there to tell that a custom resource went, handlers are told when it is back.
func TestCustomResourceGoesUnseen(t *testing.T) {
	bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
		create(t, s, widgets, "old")
		create(t, s, widgets, "both")
		shared, versions, sharedTold, told := eachTold(t, f, s, widgets)
		f.Start(nil)
		require.True(t, f.WaitForCacheSync(nil))
		synctest.Wait()
		heal := s.Inject(informertest.Fault{Effect: informertest.Refuse()})
		s.RemoveResource(widgets)
		time.Sleep(time.Minute)
		heal()
		time.Sleep(10 * time.Minute)
		for _, status := range []factory.Status{shared.Status(), versions.Status()} {
			require.Equal(t, factory.ErrorNotFound, status.ErrorClass(), "%v", status)
		}
		require.Equal(t, []int32{0, 0}, []int32{sharedTold.deleted.Load(), told.deleted.Load()})
		s.AddResource(widgetResource)
		create(t, s, widgets, "both")
		create(t, s, widgets, "new")
		time.Sleep(2 * time.Minute)
		require.ElementsMatch(t, []string{"default/both", "default/new"}, shared.Informer.GetStore().ListKeys())
		require.EqualValues(t, 1, sharedTold.deleted.Load())
		require.EqualValues(t, 2, told.deleted.Load(), "another object of the name is another object")
		require.Equal(t, []int32{3, 4}, []int32{sharedTold.added.Load(), told.added.Load()})
	})
}

// The handler that newFunc has set stays, and may tell the factory.
func TestWatchErrorHandlerOfNewFunc(t *testing.T) {
	for _, notes := range []bool{false, true} {
		t.Run(fmt.Sprint("notes ", notes), func(t *testing.T) {
			bubble(t, informertest.Options{}, func(t *testing.T, s *informertest.Server, f *factory.Factory) {
				s.Inject(informertest.Fault{Effect: informertest.Status(403)})
				var calls atomic.Int32
				lease, err := f.Acquire(pods, factory.InformerOptions{}, func() cache.SharedIndexInformer {
					i := dynamicFunc(t, s, pods)()
					require.NoError(t, i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
						calls.Add(1)
						if notes {
							factory.NoteWatchError(ctx, r, err)
						}
					}))
					return i
				})
				require.NoError(t, err)
				require.NoError(t, lease.Start())
				time.Sleep(time.Minute)
				require.Positive(t, calls.Load())
				if notes {
					require.Equal(t, factory.ErrorForbidden, lease.Status().ErrorClass())
				} else {
					require.NoError(t, lease.Status().LastError)
				}
			})
		})
	}
}

func TestNoteWatchErrorOutsideOfAFactory(t *testing.T) {
	r := cache.NewReflector(&cache.ListWatch{}, &corev1.Pod{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
	require.NotPanics(t, func() { factory.NoteWatchError(t.Context(), r, io.EOF) })
}

func TestErrorClasses(t *testing.T) {
	resource := pods.GroupResource()
	for want, errs := range map[factory.ErrorClass][]error{
		factory.NoError:       {nil},
		factory.ErrorNotFound: {apierrors.NewNotFound(resource, "x"), fmt.Errorf("listing: %w", apierrors.NewNotFound(resource, "")), &meta.NoKindMatchError{}, &meta.NoResourceMatchError{}},
		factory.ErrorUnauthorized: {
			apierrors.NewUnauthorized("unknown"), &url.Error{Op: "Get", URL: "https://host", Err: &informer.CredentialError{Err: io.EOF}},
			&url.Error{Op: "Get", URL: "https://host", Err: errors.New("getting credentials: exec: exit status 1")},
			&url.Error{Op: "Get", URL: "https://host", Err: errors.New(`oauth2: "invalid_grant"`)},
		},
		factory.ErrorForbidden: {apierrors.NewForbidden(resource, "", io.EOF)},
		factory.ErrorExpired:   {apierrors.NewResourceExpired("old"), apierrors.NewGone("old")},
		factory.ErrorThrottled: {apierrors.NewTooManyRequests("slow down", 1), apierrors.NewGenericServerResponse(503, "get", resource, "", "", 30, false)},
		factory.ErrorServer:    {apierrors.NewInternalError(io.EOF), apierrors.NewServiceUnavailable("down"), apierrors.NewTimeoutError("", 1)},
		factory.ErrorUnreachable: {
			&url.Error{Op: "Get", URL: "https://host", Err: x509.UnknownAuthorityError{}}, &net.DNSError{Name: "host", IsNotFound: true}, &url.Error{Op: "Get", URL: "https://host", Err: tls.RecordHeaderError{}},
			errors.New("stream error: stream ID 5; INTERNAL_ERROR; received from peer"), errors.New("http2: client connection lost"),
			io.ErrUnexpectedEOF, context.DeadlineExceeded, fmt.Errorf("dial: %w", syscall.ECONNREFUSED), syscall.ECONNRESET,
			&informer.StallError{Silence: time.Minute}, &informer.BodyError{Err: io.ErrUnexpectedEOF}, // nothing came in time, or not all
		},
		factory.ErrorOther: {
			errors.New("handler"), apierrors.NewBadRequest(""), &informer.BodyError{Err: informer.ErrNotList},
			// A database may be unreachable, and another server forbid: that says nothing of the
			// one that is followed.
			&informer.BatchError{Err: syscall.ECONNREFUSED}, &informer.ProcessError{Err: apierrors.NewForbidden(resource, "", io.EOF)},
			&informer.StoreError{Err: context.DeadlineExceeded}, &informer.ItemError{Err: io.ErrUnexpectedEOF},
		},
	} {
		for _, err := range errs {
			require.Equal(t, want, factory.ClassOf(err), "%v", err)
		}
	}
}
