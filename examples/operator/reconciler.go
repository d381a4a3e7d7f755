package main

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// partsField is indexed, so that the bundles of a changed ConfigMap are found without looking at
// all.
const partsField = "spec.parts"

// reconciler keeps the ConfigMaps of bundles up to date.
type reconciler struct{ client client.Client }

// setup adds the reconciler to a manager.
func setup(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &reconciler{mgr.GetClient()}
	err := mgr.GetFieldIndexer().IndexField(ctx, &Bundle{}, partsField, func(obj client.Object) []string {
		return obj.(*Bundle).Spec.Parts
	})
	if err != nil {
		return fmt.Errorf("index of parts: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&Bundle{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.bundlesOf)).
		WithOptions(options).
		Complete(r)
}

// bundlesOf returns the bundles that a ConfigMap is a part of.
func (r *reconciler) bundlesOf(ctx context.Context, part client.Object) (requests []reconcile.Request) {
	var bundles BundleList
	err := r.client.List(ctx, &bundles, client.InNamespace(part.GetNamespace()), client.MatchingFields{partsField: part.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the bundles of a part", "part", client.ObjectKeyFromObject(part))
		return nil
	}
	for i := range bundles.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&bundles.Items[i])})
	}
	return requests
}

// Reconcile implements reconcile.Reconciler. The ConfigMap of a bundle that is gone is left to the
// garbage collector.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var bundle Bundle
	if err := r.client.Get(ctx, request.NamespacedName, &bundle); err != nil || bundle.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	data, missing, err := r.merge(ctx, &bundle)
	if err != nil {
		return reconcile.Result{}, err
	}
	status := BundleStatus{ObservedGeneration: bundle.Generation, Keys: len(data), Missing: missing}
	if len(missing) > 0 {
		status.Problem = "some parts do not exist"
	}
	ours, err := r.write(ctx, &bundle, data)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !ours {
		status.Keys, status.Problem = 0, fmt.Sprintf("a ConfigMap %q exists that is not this bundle's", bundle.Name)
	}
	if reflect.DeepEqual(bundle.Status, status) {
		return reconcile.Result{}, nil
	}
	bundle.Status = status
	return reconcile.Result{}, r.client.Status().Update(ctx, &bundle)
}

// merge returns the data of the parts, and the parts that do not exist.
func (r *reconciler) merge(ctx context.Context, bundle *Bundle) (data map[string]string, missing []string, err error) {
	data = map[string]string{}
	for _, name := range bundle.Spec.Parts {
		var part corev1.ConfigMap
		err := r.client.Get(ctx, client.ObjectKey{Namespace: bundle.Namespace, Name: name}, &part)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case err != nil:
			return nil, nil, fmt.Errorf("part %q: %w", name, err)
		default:
			maps.Copy(data, part.Data)
		}
	}
	return data, missing, nil
}

// write creates or updates the bundle's ConfigMap, unless one exists that is not the bundle's.
func (r *reconciler) write(ctx context.Context, bundle *Bundle, data map[string]string) (ours bool, err error) {
	result := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: bundle.Namespace, Name: bundle.Name}}
	err = r.client.Get(ctx, client.ObjectKeyFromObject(result), result)
	if err == nil && !metav1.IsControlledBy(result, bundle) {
		return false, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	_, err = controllerutil.CreateOrUpdate(ctx, r.client, result, func() error {
		result.Data = data
		return controllerutil.SetControllerReference(bundle, result, r.client.Scheme())
	})
	return true, err
}
